// SPDX-License-Identifier: Apache-2.0
/*
 * Attach: whether the threads of this process are weft's. Runs as the library's constructor, before all others (-z initfirst):
 * some make threads. And where nobody has asked for it then, when the program calls weft_attach().
 *
 * The program asks for it by being linked with the library, its user by a preload. A library that is linked with it, or is
 * opened later, does not: a plugin does not change its host.
 *
 * In the constructor libc and the libraries of sanitizers, which replace functions of libc, have not run their own constructors then. So
 * nothing is called here but what the loader answers by itself.
 *
 * Replaces the few system calls of libc that can make a thread, and tells linux/ what it needs to start the
 * runtime when the first one is made: all other sites are found and replaced then, so a program without
 * threads pays nothing for them. Whatever is missing leaves the program on plain NPTL, with one line that
 * says why.
 */
#include "arch/arch.h"
#include "base/fmt.h"
#include "gate/before.h"
#include "gate/children.h"
#include "gate/env.h"
#include "gate/exec.h"
#include "gate/known.h"
#include "gate/modules.h"
#include "gate/say.h"
#include "gate/perfmap.h"
#include "gate/settings.h"
#include "gate/table.h"
#include "linux/abi.h"
#include "linux/dispatch.h"
#include "obs/events.h"
#include "obs/lastword.h"
#include "obs/overflow.h"
#include "obs/stall.h"
#include "obs/stats.h"
#include "sched/clock.h"
#include "trace/trace.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define HWCAP2_FSGSBASE 2ul
#define DEFAULT_SIGSTACK 4096
#define REFUSED 125 /* as `weft run` ends */

#define SONAME "libweft.so.0"
#define WHY_UNASKED "only a library names libweft, and weft_attach() was not called"

static struct wf_settings settings;
static bool is_preloaded;   /* by `weft run`, or a user who knows what it does */
static bool is_unasked;     /* weft_attach() may come */
static uint64_t nr_filters; /* of system calls, when the library was loaded; with is_unasked */

/* For those who look from outside: `weft ps`. */
static void note_native(const char *why)
{
	struct wf_fmt f;

	wf_fmt_init(&f, lx.why_native, sizeof(lx.why_native));
	wf_fmt_str(&f, why);
}

/* A program that is linked with us asks weft_mode(), and prints what it likes. */
static void stay_native(const char *why)
{
	note_native(why);
	if (!is_preloaded && !settings.is_strict)
		return;
	wf_say(settings.is_strict ? "not running on plain NPTL, as --strict asks: "
				  : "running on plain NPTL: ",
	       why, NULL);
	if (settings.is_strict)
		(void)sys1(__NR_exit_group, REFUSED);
}

static void say_short(const char *of)
{
	wf_say("no further kernel thread can be made, threads in calls that block take turns: ", of,
	       NULL);
}

static void stay_outside(const char *why)
{
	wf_say("its own kernel threads stay outside of the program's sandbox: ", why, NULL);
}

static void say_lacking(void)
{
	wf_say("no memory for the events of a kernel thread, which goes on without: ",
	       "RLIMIT_AS, or vm.max_map_count", NULL);
}

static void arm_trace(void)
{
	struct wf_trace_moment now = { .cycles = wf_cpu_cycles() };

	if (!settings.keeps)
		return;
	(void)sys_clock_read(CLOCK_MONOTONIC, &now.monotonic);
	(void)sys_clock_read(CLOCK_BOOTTIME, &now.boottime);
	wf_trace_arm(settings.keeps, settings.ring_bytes, &now);
	lx_config.on_lacking = say_lacking;
}

static void find_rseq(void)
{
	const ptrdiff_t *offset = dlsym(RTLD_DEFAULT, "__rseq_offset");
	const unsigned *size = dlsym(RTLD_DEFAULT, "__rseq_size");

	if (!offset || !size || !*size)
		return;
	lx_config.rseq_area = (char *)__builtin_thread_pointer() + *offset;
	/* the kernel's original size is the least it registers */
	lx_config.rseq_bytes = *size < 32 ? 32 : *size;
}

/* Deadlines are read off a clock at every turn of a server with timeouts: spare it the system call. */
static void find_clock(const struct r_debug *debug)
{
	void *vdso = wf_modules_find(debug, "linux-vdso.so.1");

	if (vdso)
		wf_clock_vdso = (typeof(wf_clock_vdso))dlsym(vdso, "__vdso_clock_gettime");
}

static bool find_program(const struct r_debug *debug, struct dl_phdr_info *out)
{
	const ElfW(Phdr) *headers = NULL;
	int n = dlinfo(debug->r_map, RTLD_DI_PHDR, &headers);

	*out = (struct dl_phdr_info){ .dlpi_addr = debug->r_map->l_addr,
				      .dlpi_name = "",
				      .dlpi_phdr = headers,
				      .dlpi_phnum = (ElfW(Half))n };
	return n > 0;
}

/* The process ends, from whatever thread. */
static void on_exit_of_process(void)
{
	const struct wf_modules_count count = wf_modules_count();
	const struct wf_stats_gate gate = { .modules = count.modules,
					    .patched = count.patched,
					    .left = count.left };

	const char *why;

	if (settings.wants_stats)
		wf_stats_print(&gate);
	why = wf_events_write();
	if (why)
		wf_say("the events cannot be written to ", wf_events_file(), why);
}

/* The name of the program's file is the last thing on main's stack. */
static uintptr_t main_stack_top(void)
{
	const char *name = (const char *)getauxval(AT_EXECFN);

	while (name && *name)
		name++;
	return WF_ALIGN_UP((uintptr_t)name + 1, WF_PAGE);
}

static const char *why_not(int error)
{
	switch (error) {
	case -ENOMEM:
		return "no memory to patch libc (RLIMIT_AS, or vm.max_map_count)";
	case -ENOENT:
		return "no libc of a known kind is loaded";
	case -EBUSY:
		return "the first thread is made while a module is being loaded";
	default:
		return "the text of libc may not be written (PR_SET_MDWE or a security policy)";
	}
}

/* At the first thread: all that is loaded by then. NULL, or why it is not to be. */
static const char *patch_all(void)
{
	int ret;

	wf_settings_complain();
	ret = wf_modules_patch_all();
	if (ret < 0)
		return why_not(ret);
	return wf_modules_filter_shared()
		       ? "it uses the GS base itself, and may filter its own system calls (seccomp)"
		       : NULL;
}

static const char *why_no_fsgsbase(char **env)
{
	const char *preload = env ? wf_env_get(env, "LD_PRELOAD") : NULL;

	for (; preload && *preload; preload++)
		if (wf_env_begins(preload, "vgpreload_"))
			return "valgrind hides FSGSBASE, the right to write the FS and GS base";
	return "this processor or kernel does not let programs write the FS and GS base (FSGSBASE)";
}

/*
 * Where no call of libc can be seen, the first thread cannot, either. A program that names nothing that makes one is not
 * bothered, such as each ls of a script.
 */
static void stay_native_unseen(const char *why, const struct r_debug *debug)
{
	if (settings.is_strict || !debug || wf_modules_make_threads(debug))
		stay_native(why);
}

/* Of the file that dladdr() tells for us. */
static const char *own_name(void)
{
	Dl_info own;

	return dladdr((void *)own_name, &own) && own.dli_fname ? own.dli_fname : NULL;
}

static void prepare(const struct r_debug *debug, char **env)
{
	unsigned long sigstack = getauxval(AT_MINSIGSTKSZ);
	const char *library = own_name();
	struct dl_phdr_info program;
	int ret;

	if (!(getauxval(AT_HWCAP2) & HWCAP2_FSGSBASE)) {
		stay_native_unseen(why_no_fsgsbase(env), debug);
		return;
	}
	if (wf_before_has_threads()) {
		stay_native("threads were made before weft was loaded");
		return;
	}
	lx_config.runtime.min_sigstack = sigstack ? sigstack : DEFAULT_SIGSTACK;
	lx_config.on_refused = stay_native;
	lx_config.on_short = say_short;
	lx_config.on_outside = stay_outside;
	lx_config.prepare = patch_all;
	arm_trace();
	if (settings.trace_file)
		wf_events_to(settings.trace_file);
	if (settings.wants_stats || settings.trace_file)
		lx_config.on_exit = on_exit_of_process;
	lx_config.on_overflow = wf_overflow_report;
	lx_config.on_stall = wf_stall_report;
	if (wf_lastword_open(settings.watch))
		lx_config.on_death = wf_lastword_tell;
	lx_config.main_stack_top = main_stack_top();
	if (library && is_preloaded && !settings.leaves_children &&
	    (settings.is_first || settings.is_strict))
		wf_exec_watch(library, settings.is_strict);
	wf_cpu_poison();
	find_rseq();
	lx_config.syscall_function = dlsym(RTLD_DEFAULT, "syscall");
	lx_gate = (struct lx_gate_ops){ wf_gate_to_tramp, wf_gate_from_tramp, wf_gate_in_pool,
					wf_modules_in_libc };
	if (!debug || !find_program(debug, &program)) {
		stay_native("the dynamic loader does not list its modules");
		return;
	}
	find_clock(debug);
	wf_modules_init(debug, &program, lx_wants, lx_wants_at_start, &wf_known_table);
	ret = wf_modules_patch_first(dlsym(RTLD_DEFAULT, "syscall"));
	if (ret < 0)
		stay_native_unseen(why_not(ret), debug);
}

/*
 * A preload reaches whatever a program executes, programs of another libc, too. That one may call us without arguments, and
 * is left alone.
 */
static void leave_alone(void)
{
	const char *strict = getenv("WEFT_STRICT");

	if (wf_env_switch(strict) != WF_ENV_ON)
		return;
	wf_say("not running without weft, as --strict asks: ", "this program's libc is not glibc",
	       NULL);
	(void)sys1(__NR_exit_group, REFUSED);
}

/* Nothing but glibc's loader has this, whatever else takes its part. */
static bool is_glibc(void)
{
	return dlsym(RTLD_DEFAULT, "_rtld_global_ro") != NULL;
}

/* Their leak checkers know kernel threads only, and one tells races by the calls that make them. */
static const char *find_sanitizer(void)
{
	if (dlsym(RTLD_DEFAULT, "__tsan_init"))
		return "ThreadSanitizer knows kernel threads only (WEFT=1 attaches all the same)";
	return dlsym(RTLD_DEFAULT, "__lsan_do_leak_check")
		       ? "a leak checker knows kernel threads only (WEFT=1 attaches all the same)"
		       : NULL;
}

/* The loader lists the program, what is preloaded, what the program needs, libc among it, and then what these need. */
static bool is_before_libc(const struct r_debug *debug)
{
	const struct link_map *libc = wf_modules_find(debug, "libc.so.6");
	const struct link_map *map = debug->r_map;

	while (map && map != libc && map->l_ld != _DYNAMIC)
		map = map->l_next;
	return map && map != libc;
}

static bool is_in_first_namespace(const struct r_debug *debug)
{
	const struct link_map *map = debug->r_map;

	while (map && map->l_ld != _DYNAMIC)
		map = map->l_next;
	return map;
}

/* At load: by the program or its user; what other libraries need changes nothing. */
static bool is_asked(const struct r_debug *debug, char **env)
{
	const char *preload = env ? wf_env_get(env, "LD_PRELOAD") : NULL, *name = own_name();
	bool is_linked = debug && wf_modules_program_needs(debug, SONAME);

	if (!debug)
		return is_preloaded = true; /* prepare() says what that means */
	is_preloaded = is_linked ? preload && name && wf_env_lists(preload, name)
				 : is_before_libc(debug);
	return is_linked || is_preloaded;
}

/* Why not, though it is asked for. */
static const char *find_obstacle(const struct r_debug *debug)
{
	if (settings.is_off)
		return "weft is switched off (WEFT=0)";
	if (debug && !is_in_first_namespace(debug))
		return "this copy of libweft lies in a namespace of its own (dlmopen)";
	return is_preloaded || settings.is_on ? NULL : find_sanitizer();
}

static void attach(const struct r_debug *debug, char **env)
{
	const char *why = find_obstacle(debug);

	if (why)
		note_native(why);
	else
		prepare(debug, env);
}

const char *wf_attach_why_not(void)
{
	return lx.why_native[0] ? lx.why_native : lx_why_native();
}

int wf_attach_late(void)
{
	if (!is_unasked)
		return wf_attach_why_not() ? -ENOTSUP : 0;
	if (wf_before_has_threads())
		return -EBUSY;
	is_unasked = false;
	note_native("");
	if (wf_before_nr_filters() != nr_filters)
		note_native(LX_WHY_FILTERED);
	else
		attach(dlsym(RTLD_DEFAULT, "_r_debug"), getauxval(AT_SECURE) ? NULL : environ);
	lx.has_userfaults = wf_before_has_userfaults();
	return wf_attach_late();
}

__attribute__((constructor)) static void load(int argc, char **argv, char **envp)
{
	const struct r_debug *debug;
	/* A program with rights that its user has not: what the user says does not count, and what the loader hid stays so. */
	bool is_secure;

	(void)argc;
	(void)argv;
	if (!is_glibc()) {
		note_native("this program's libc is not glibc");
		leave_alone();
		return;
	}
	/* Asking the processor is slow; those that it concerns have not got the one, either. */
	if (!(getauxval(AT_HWCAP2) & HWCAP2_FSGSBASE) && wf_erratum_is_here() &&
	    wf_erratum_fence_locks() < 0)
		wf_say("locks lack a fence that this processor needs (erratum 147): ",
		       "the text of libweft may not be written", NULL);
	is_secure = getauxval(AT_SECURE);
	debug = dlsym(RTLD_DEFAULT, "_r_debug");
	wf_settings_read(is_secure ? NULL : envp, &settings);
	if (settings.wants_perf_map)
		wf_perfmap_want();
	is_unasked = !is_asked(debug, is_secure ? NULL : envp) && !find_obstacle(debug);
	if (is_unasked) {
		nr_filters = wf_before_nr_filters();
		note_native(WHY_UNASKED);
		return;
	}
	if (!is_secure)
		wf_env_restore(envp, "GLIBC_TUNABLES");
	attach(debug, is_secure ? NULL : envp);
	if (settings.leaves_children)
		wf_children_leave(envp);
}
