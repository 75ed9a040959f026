// SPDX-License-Identifier: Apache-2.0
/*
 * Attach: runs as the constructor of the preloaded library, before main().
 *
 * Finds and replaces the system call sites of libc (and of other small modules that have any), and tells
 * linux/ what it needs to start the runtime when the first thread is made. Whatever is missing leaves the
 * program on plain NPTL, with one line that says why.
 */
#include "arch/x86_64/cpu.h"
#include "base/fmt.h"
#include "gate/patch.h"
#include "linux/abi.h"
#include "obs/events.h"
#include "obs/stats.h"
#include "trace/trace.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <unistd.h>

#define HWCAP2_FSGSBASE 2ul
/* other modules: a longer text costs more to search than it can be worth */
#define TEXT_LIMIT (2ul << 20)
#define DEFAULT_SIGSTACK 4096

static struct wf_gate_counts total;
static bool is_libc_patched;
static int patch_error;

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

static bool is_named(const char *path, const char *name)
{
	const char *slash = strrchr(path, '/');

	return !strncmp(slash ? slash + 1 : path, name, strlen(name));
}

static size_t text_bytes(const struct dl_phdr_info *m)
{
	size_t n = 0;

	for (int i = 0; i < m->dlpi_phnum; i++)
		if (m->dlpi_phdr[i].p_type == PT_LOAD && m->dlpi_phdr[i].p_flags & PF_X)
			n += m->dlpi_phdr[i].p_memsz;
	return n;
}

/* libc reads clocks through the vDSO, which makes a call of its own for those of threads. */
static bool is_clock_call(int nr)
{
	return nr == __NR_clock_gettime || nr == __NR_clock_getres;
}

static int patch_one(struct dl_phdr_info *m, size_t size, void *arg)
{
	bool is_libc = is_named(m->dlpi_name, "libc.so.6") ||
		       is_named(m->dlpi_name, "libpthread.so.0");
	struct wf_gate_counts counts = { 0 };
	int ret;

	(void)size;
	(void)arg;
	if (is_named(m->dlpi_name, "ld-linux") || is_named(m->dlpi_name, "libweft"))
		return 0;
	/* What cannot be patched in the vDSO costs the clocks of threads, and nothing else. */
	if (is_named(m->dlpi_name, "linux-vdso")) {
		(void)wf_gate_patch_module(m, is_clock_call, &counts);
		return 0;
	}
	if (!is_libc && text_bytes(m) > TEXT_LIMIT)
		return 0;
	ret = wf_gate_patch_module(m, lx_wants, &counts);
	if (ret < 0 && is_libc)
		patch_error = ret;
	if (ret == 0 && is_libc)
		is_libc_patched = true;
	total.found += counts.found;
	total.wanted += counts.wanted;
	total.patched += counts.patched;
	total.left += counts.left;
	return 0;
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
static void find_clock(void)
{
	void *vdso = dlopen("linux-vdso.so.1", RTLD_LAZY | RTLD_NOLOAD);

	if (vdso)
		wf_clock_vdso = (typeof(wf_clock_vdso))dlsym(vdso, "__vdso_clock_gettime");
}

static bool wants_stats;
static char trace_path[PATH_MAX]; /* a copy: the program may rewrite its environment */

/* The process ends, from whatever thread. */
static void on_exit_of_process(void)
{
	const struct wf_stats_gate gate = { .patched = total.patched, .left = total.left };

	if (wants_stats)
		wf_stats_print(&gate);
	if (trace_path[0] && wf_events_write(trace_path) < 0)
		say("the events cannot be written to ", trace_path);
}

/* A number of the environment, or 0; weft run has checked it, another caller may not have. */
static uint64_t number_of(const char *name, uint64_t max)
{
	const char *text = getenv(name);
	uint64_t v = 0;

	if (!text || !*text)
		return 0;
	if (wf_fmt_parse_u64(text, &v) && v <= max)
		return v;
	say("ignoring a bad value of ", name);
	return 0;
}

__attribute__((constructor)) static void attach(void)
{
	const char *off = getenv("WEFT"), *stats = getenv("WEFT_STATS"),
		   *trace = getenv("WEFT_TRACE");
	unsigned long sigstack = getauxval(AT_MINSIGSTKSZ);

	if (off && !strcmp(off, "0"))
		return;
	if (!(getauxval(AT_HWCAP2) & HWCAP2_FSGSBASE)) {
		stay_native(
			"this processor or kernel does not let programs write the FS and GS base (FSGSBASE)");
		return;
	}
	if (wf_cpu_gsbase()) {
		stay_native("something in this program uses the GS base already");
		return;
	}
	if (has_other_threads()) {
		stay_native("threads were made before weft was loaded");
		return;
	}
	lx_config.nr_workers = (uint32_t)number_of("WEFT_WORKERS", WF_MAX_WORKERS);
	lx_config.seed = number_of("WEFT_SEED", UINT64_MAX);
	lx_config.min_sigstack = sigstack ? sigstack : DEFAULT_SIGSTACK;
	lx_config.on_refused = stay_native;
	wants_stats = stats && *stats && strcmp(stats, "0");
	wf_trace_on = trace && *trace && strcmp(trace, "0");
	/* Any other word than a path, "1" say, only keeps the events in memory for weft dump. */
	if (wf_trace_on && trace[0] == '/' && strlen(trace) < sizeof(trace_path))
		strcpy(trace_path, trace);
	if (wants_stats || trace_path[0])
		lx_config.on_exit = on_exit_of_process;
	__builtin_cpu_init(); /* a constructor runs before libgcc's own may have */
	wf_cpu_poison(__builtin_cpu_supports("avx512f"));
	find_rseq();
	find_clock();
	lx_gate = (struct lx_gate_ops){ wf_gate_to_tramp, wf_gate_from_tramp, wf_gate_in_pool };
	(void)dl_iterate_phdr(patch_one, NULL);
	if (!is_libc_patched)
		stay_native(
			patch_error == -ENOMEM
				? "no memory to patch libc"
				: "the text of libc may not be written (PR_SET_MDWE or a security policy)");
}
