// SPDX-License-Identifier: Apache-2.0
/*
 * Attach: runs as the constructor of the preloaded library, before all others (-z initfirst): some make threads.
 *
 * libc and the libraries of sanitizers, which replace functions of libc, have not run their own constructors then. So
 * nothing is called here but what the loader answers by itself.
 *
 * Replaces the few system calls of libc that can make a thread, and tells linux/ what it needs to start the
 * runtime when the first one is made: all other sites are found and replaced then, so a program without
 * threads pays nothing for them. Whatever is missing leaves the program on plain NPTL, with one line that
 * says why.
 */
#include "arch/x86_64/cpu.h"
#include "base/fmt.h"
#include "gate/children.h"
#include "gate/env.h"
#include "gate/modules.h"
#include "gate/table.h"
#include "linux/abi.h"
#include "obs/events.h"
#include "obs/stats.h"
#include "trace/trace.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <unistd.h>

#define HWCAP2_FSGSBASE 2ul
#define DEFAULT_SIGSTACK 4096

static void say(const char *what, const char *why)
{
	char line[256];
	struct wf_fmt f;

	wf_fmt_init(&f, line, sizeof(line));
	wf_fmt_str(&f, "weft: ");
	wf_fmt_str(&f, what);
	wf_fmt_str(&f, why);
	wf_fmt_str(&f, "\n");
	(void)sys_write(2, line, f.len);
}

static void stay_native(const char *why)
{
	say("running on plain NPTL: ", why);
}

static bool has_other_threads(void)
{
	char buf[1024];
	long fd = sys4(__NR_openat, AT_FDCWD, "/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC,
		       0);
	int entries = 0;
	long n;

	if (fd < 0)
		return false;
	while ((n = sys3(__NR_getdents64, fd, buf, sizeof(buf))) > 0)
		for (long at = 0; at < n; at += *(unsigned short *)(buf + at + 16))
			entries++;
	(void)sys_close((int)fd);
	return entries > 3; /* ".", ".." and the main thread */
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

static char **environment; /* the kernel's; libc does not know it yet */

static const char *env_of(const char *name)
{
	return wf_env_get(environment, name);
}

static bool wants_stats;
static char trace_path[PATH_MAX]; /* a copy: the program may rewrite its environment */

/* The process ends, from whatever thread. */
static void on_exit_of_process(void)
{
	const struct wf_modules_count count = wf_modules_count();
	const struct wf_stats_gate gate = { .modules = count.modules,
					    .patched = count.patched,
					    .left = count.left };

	if (wants_stats)
		wf_stats_print(&gate);
	if (trace_path[0] && wf_events_write(trace_path) < 0)
		say("the events cannot be written to ", trace_path);
}

/* A number of the environment, or 0; weft run has checked it, another caller may not have. */
static uint64_t number_of(const char *name, uint64_t max)
{
	const char *text = env_of(name);
	uint64_t v = 0;

	if (!text || !*text)
		return 0;
	if (wf_fmt_parse_u64(text, &v) && v <= max)
		return v;
	say("ignoring a bad value of ", name);
	return 0;
}

static enum lx_ring_mode ring_mode(void)
{
	const char *text = env_of("WEFT_IO_URING");

	if (!text || !*text || wf_env_is(text, "auto"))
		return LX_RING_AUTO;
	if (wf_env_is(text, "always"))
		return LX_RING_ALWAYS;
	if (!wf_env_is(text, "never"))
		say("ignoring a bad value of ", "WEFT_IO_URING");
	return wf_env_is(text, "never") ? LX_RING_NEVER : LX_RING_AUTO;
}

static const char *why_not(int error)
{
	switch (error) {
	case -ENOMEM:
		return "no memory to patch libc";
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
	int ret = wf_modules_patch_all();

	if (ret < 0)
		return why_not(ret);
	return wf_modules_filter_shared()
		       ? "it uses the GS base itself, and may filter its own system calls (seccomp)"
		       : NULL;
}

static void keep_path(const char *path)
{
	size_t n = 0;

	while (n < sizeof(trace_path) && path[n])
		n++;
	if (n == sizeof(trace_path))
		return;
	for (size_t i = 0; i < n; i++)
		trace_path[i] = path[i];
}

static void prepare(void)
{
	const char *off = env_of("WEFT"), *stats = env_of("WEFT_STATS"),
		   *trace = env_of("WEFT_TRACE"), *seed = env_of("WEFT_SEED");
	unsigned long sigstack = getauxval(AT_MINSIGSTKSZ);
	const struct r_debug *debug;
	struct dl_phdr_info program;
	int ret;

	if (off && wf_env_is(off, "0"))
		return;
	if (!(getauxval(AT_HWCAP2) & HWCAP2_FSGSBASE)) {
		stay_native(
			"this processor or kernel does not let programs write the FS and GS base (FSGSBASE)");
		return;
	}
	if (has_other_threads()) {
		stay_native("threads were made before weft was loaded");
		return;
	}
	lx_config.nr_workers = (uint32_t)number_of("WEFT_WORKERS", WF_MAX_WORKERS);
	lx_config.seed = number_of("WEFT_SEED", UINT64_MAX);
	lx_config.is_shuffled = seed && *seed;
	lx_config.slice_us = (uint32_t)number_of("WEFT_SLICE", WF_MAX_SLICE_US);
	lx_config.ring = ring_mode();
	lx_config.min_sigstack = sigstack ? sigstack : DEFAULT_SIGSTACK;
	lx_config.on_refused = stay_native;
	lx_config.prepare = patch_all;
	wants_stats = stats && *stats && !wf_env_is(stats, "0");
	wf_trace_on = trace && *trace && !wf_env_is(trace, "0");
	/* Any other word than a path, "1" say, only keeps the events in memory for weft dump. */
	if (wf_trace_on && trace[0] == '/')
		keep_path(trace);
	if (wants_stats || trace_path[0])
		lx_config.on_exit = on_exit_of_process;
	wf_cpu_poison();
	find_rseq();
	lx_config.syscall_function = dlsym(RTLD_DEFAULT, "syscall");
	lx_gate = (struct lx_gate_ops){ wf_gate_to_tramp, wf_gate_from_tramp, wf_gate_in_pool };
	debug = dlsym(RTLD_DEFAULT, "_r_debug");
	if (!debug || !find_program(debug, &program)) {
		stay_native("the dynamic loader does not list its modules");
		return;
	}
	find_clock(debug);
	wf_modules_init(debug, &program, lx_wants, lx_wants_at_start);
	ret = wf_modules_patch_first(dlsym(RTLD_DEFAULT, "syscall"));
	if (ret < 0)
		stay_native(why_not(ret));
}

__attribute__((constructor)) static void attach(int argc, char **argv, char **envp)
{
	const char *children;

	(void)argc;
	(void)argv;
	environment = envp;
	wf_env_restore(envp, "GLIBC_TUNABLES");
	children = env_of("WEFT_CHILDREN");
	prepare();
	if (children && wf_env_is(children, "no"))
		wf_children_leave(envp);
}
