// SPDX-License-Identifier: Apache-2.0
/*
 * The checks of `weft doctor`, and their findings.
 *
 * Called by: doctor.c. Invariant: a check only reads. A file that cannot be read is a finding of its own, never a
 * silent "ok".
 */
#include "checks.h"

#include <elf.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "library.h"
#include "probes.h"

#define HWCAP2_FSGSBASE (1u << 1)

/* Auxiliary vector entries that elf.h of older libcs lacks. */
#define AUX_MINSIGSTKSZ 51
#define AUX_RSEQ_FEATURE_SIZE 27

__attribute__((format(printf, 3, 4))) static void found(struct wf_checks_finding *f,
							enum wf_checks_level level,
							const char *value, ...)
{
	va_list args;

	f->level = level;
	va_start(args, value);
	vsnprintf(f->value, sizeof(f->value), value, args);
	va_end(args);
}

__attribute__((format(printf, 2, 3))) static void advise(struct wf_checks_finding *f,
							 const char *advice, ...)
{
	va_list args;

	va_start(args, advice);
	vsnprintf(f->advice, sizeof(f->advice), advice, args);
	va_end(args);
}

static void unreadable(struct wf_checks_finding *f, const char *path)
{
	found(f, WF_CHECKS_WARN, "unknown");
	advise(f, "%s cannot be read", path);
}

/* For checks that try something: there is nothing to try on a copy of a machine. */
static bool skipped(const struct wf_machine *m, struct wf_checks_finding *f)
{
	if (wf_machine_is_live(m))
		return false;
	found(f, WF_CHECKS_SKIPPED, "not tried");
	advise(f, "only the live machine can answer");
	return true;
}

static void read_library(const struct wf_machine *m, struct wf_checks_finding *f)
{
	char path[PATH_MAX], why[256];

	if (skipped(m, f))
		return;
	if (wf_library_find(path, why, sizeof(why))) {
		found(f, WF_CHECKS_OK, "%s", path);
	} else {
		found(f, WF_CHECKS_FAIL, "none");
		advise(f, "%s", why);
	}
}

static void read_kernel(const struct wf_machine *m, struct wf_checks_finding *f)
{
	static const char path[] = "/proc/sys/kernel/osrelease";
	char release[96];
	int major, minor;

	if (!wf_machine_line(m, path, release, sizeof(release)) ||
	    sscanf(release, "%d.%d", &major, &minor) != 2) {
		unreadable(f, path);
	} else if (major < 5 || (major == 5 && minor < 9)) {
		found(f, WF_CHECKS_FAIL, "%s", release);
		advise(f, "weft needs Linux 5.9 or later; programs run on plain NPTL here");
	} else {
		found(f, WF_CHECKS_OK, "%s", release);
	}
}

static void read_fsgsbase(const struct wf_machine *m, struct wf_checks_finding *f)
{
	uint64_t hwcap2;

	if (!wf_machine_auxv(m, AT_HWCAP2, &hwcap2)) {
		unreadable(f, "/proc/self/auxv");
	} else if (hwcap2 & HWCAP2_FSGSBASE) {
		found(f, WF_CHECKS_OK, "yes");
	} else {
		found(f, WF_CHECKS_FAIL, "no");
		advise(f, "programs run on plain NPTL here");
	}
}

static void read_guard(const struct wf_machine *m, struct wf_checks_finding *f)
{
	if (skipped(m, f))
		return;
	if (wf_probes_guard() == 0) {
		found(f, WF_CHECKS_OK, "yes");
		return;
	}
	found(f, WF_CHECKS_WARN, "no");
	advise(f, "guard pages take mappings of their own: see map-count (Linux 6.13 has it)");
}

static void read_io_uring(const struct wf_machine *m, struct wf_checks_finding *f)
{
	long long disabled = 0;
	int ret;

	if (skipped(m, f))
		return;
	ret = wf_probes_io_uring();
	(void)wf_machine_number(m, "/proc/sys/kernel/io_uring_disabled", &disabled);
	if (ret == 0) {
		found(f, WF_CHECKS_OK, "yes");
	} else if (ret == -EPERM && disabled > 0) {
		found(f, WF_CHECKS_WARN, "refused (EPERM)");
		advise(f,
		       "the sysctl kernel.io_uring_disabled is %lld; "
		       "each wait for a shared futex, a child or the disk holds a kernel thread",
		       disabled);
	} else if (ret == -EPERM) {
		found(f, WF_CHECKS_WARN, "refused (EPERM)");
		advise(f,
		       "a seccomp filter or security module forbids it, as in most containers; "
		       "each wait for a shared futex, a child or the disk holds a kernel thread");
	} else if (ret == -ENOSYS) {
		found(f, WF_CHECKS_WARN, "no (ENOSYS)");
		advise(f,
		       "the kernel lacks it or a seccomp filter says so; "
		       "each wait for a shared futex, a child or the disk holds a kernel thread");
	} else if (ret == -EOPNOTSUPP) {
		found(f, WF_CHECKS_WARN, "without FUTEX_WAIT and WAITID");
		advise(f, "Linux 6.7 has them; until then each wait for a shared futex, a child or "
			  "the disk holds a kernel thread");
	} else {
		found(f, WF_CHECKS_WARN, "no (%s)", strerror(-ret));
		advise(f,
		       "each wait for a shared futex, a child or the disk holds a kernel thread");
	}
}

static void read_epoll(const struct wf_machine *m, struct wf_checks_finding *f)
{
	if (skipped(m, f))
		return;
	if (wf_probes_epoll_pwait2() == 0) {
		found(f, WF_CHECKS_OK, "yes");
		return;
	}
	found(f, WF_CHECKS_WARN, "no");
	advise(f, "naps of idle workers take whole milliseconds (Linux 5.11 has it)");
}

static void read_patch(const struct wf_machine *m, struct wf_checks_finding *f)
{
	const char *reason;
	int ret, mdwe;

	if (skipped(m, f))
		return;
	ret = wf_probes_patch_text();
	if (ret == 0) {
		found(f, WF_CHECKS_OK, "yes");
		return;
	}
	mdwe = wf_probes_mdwe();
	reason = mdwe > 0         ? "the process denies write-then-execute (PR_SET_MDWE)"
		 : ret == -EACCES ? "a security module (execmod) forbids it"
				  : "a seccomp filter (MemoryDenyWriteExecute=) forbids it";
	found(f, WF_CHECKS_FAIL, "no (%s)", strerror(-ret));
	advise(f, "%s; programs run on plain NPTL here", reason);
}

static void read_seccomp(const struct wf_machine *m, struct wf_checks_finding *f)
{
	char mode[16] = "0", filters[16] = "?", name[64];

	if (!wf_machine_status(m, "Name", name, sizeof(name))) {
		unreadable(f, "/proc/self/status");
		return;
	}
	/* A kernel without seccomp has no such line. */
	(void)wf_machine_status(m, "Seccomp", mode, sizeof(mode));
	(void)wf_machine_status(m, "Seccomp_filters", filters, sizeof(filters));
	if (strcmp(mode, "0") == 0) {
		found(f, WF_CHECKS_OK, "none");
		return;
	}
	found(f, WF_CHECKS_WARN, "mode %s, %s filters", mode, filters);
	advise(f, "some calls of weft may be refused; the lines above show which");
}

static void read_calls(const struct wf_machine *m, struct wf_checks_finding *f)
{
	char killed[128] = "", refused[128] = "";
	const char *name;
	int ret;

	if (skipped(m, f))
		return;
	for (size_t i = 0; wf_probes_call(i, &name, &ret); i++) {
		char *list = ret == -ECANCELED ? killed : refused;
		size_t len = strlen(list);

		if (ret < 0)
			snprintf(list + len, sizeof(killed) - len, "%s%s", len ? ", " : "", name);
	}
	if (*killed) {
		found(f, WF_CHECKS_FAIL, "killed for %s", killed);
		advise(f, "a seccomp filter ends programs under weft that make a thread; "
			  "let it allow these calls");
	} else if (*refused) {
		found(f, WF_CHECKS_WARN, "refused: %s", refused);
		advise(f, "a seccomp filter or an old kernel; let the filter allow these calls");
	} else {
		found(f, WF_CHECKS_OK, "allowed");
	}
}

/* A limit where more is better: warn below want. */
static void read_limit(const struct wf_machine *m, struct wf_checks_finding *f, const char *name,
		       long long want, const char *advice)
{
	long long soft, hard;

	if (!wf_machine_limit(m, name, &soft, &hard)) {
		unreadable(f, "/proc/self/limits");
		return;
	}
	if (soft < 0) {
		found(f, WF_CHECKS_OK, "unlimited");
		return;
	}
	found(f, soft >= want ? WF_CHECKS_OK : WF_CHECKS_WARN, "%lld", soft);
	if (soft >= want)
		return;
	if (hard < 0 || hard > soft)
		advise(f, "%s; the hard limit allows more", advice);
	else
		advise(f, "%s; the hard limit is the same", advice);
}

static void read_nofile(const struct wf_machine *m, struct wf_checks_finding *f)
{
	read_limit(m, f, "Max open files", 65536,
		   "each connection takes a descriptor or two: raise it with ulimit -n");
}

static void read_nproc(const struct wf_machine *m, struct wf_checks_finding *f)
{
	read_limit(m, f, "Max processes", 1024,
		   "workers and helpers are kernel threads of this user: raise it with ulimit -u");
}

#define FEW_TASKS 64 /* the workers of a large machine, helpers, and some in calls that block */

static void read_pids(const struct wf_machine *m, struct wf_checks_finding *f)
{
	char where[PATH_MAX], group[32];
	long long nr = wf_machine_tasks(m, where, sizeof(where));

	if (wf_machine_read(m, "/proc/self/cgroup", group, sizeof(group)) < 0) {
		unreadable(f, "/proc/self/cgroup");
	} else if (nr < 0) {
		found(f, WF_CHECKS_OK, "unlimited");
	} else {
		found(f, nr >= FEW_TASKS ? WF_CHECKS_OK : WF_CHECKS_WARN, "%lld", nr);
		advise(f, "%s%.240s",
		       nr >= FEW_TASKS
			       ? "set by "
			       : "threads in calls that block may have to take turns; set by ",
		       where);
	}
}

static void read_addresses(const struct wf_machine *m, struct wf_checks_finding *f)
{
	read_limit(m, f, "Max address space", 1ll << 32,
		   "each thread takes 8 MiB of it as libc comes: raise it with ulimit -v");
}

static void read_map_count(const struct wf_machine *m, struct wf_checks_finding *f)
{
	static const char path[] = "/proc/sys/vm/max_map_count";
	bool needs_maps = wf_machine_is_live(m) && wf_probes_guard() < 0;
	long long nr;

	if (!wf_machine_number(m, path, &nr)) {
		unreadable(f, path);
	} else if (needs_maps && nr < 1048576) {
		/* Two mappings for a stack with its guard; a fifth is left to the program. */
		found(f, WF_CHECKS_WARN, "%lld", nr);
		advise(f, "room for about %lld guarded stacks; sysctl vm.max_map_count=1048576",
		       nr / 10 * 4);
	} else {
		found(f, WF_CHECKS_OK, "%lld", nr);
	}
}

static void read_least(const struct wf_machine *m, struct wf_checks_finding *f, const char *path,
		       long long want, const char *advice)
{
	long long nr;

	if (!wf_machine_number(m, path, &nr)) {
		unreadable(f, path);
		return;
	}
	found(f, nr >= want ? WF_CHECKS_OK : WF_CHECKS_WARN, "%lld", nr);
	if (nr < want)
		advise(f, "%s", advice);
}

static void read_pid_max(const struct wf_machine *m, struct wf_checks_finding *f)
{
	read_least(m, f, "/proc/sys/kernel/pid_max", 32768,
		   "few process IDs for the machine: sysctl kernel.pid_max");
}

static void read_threads_max(const struct wf_machine *m, struct wf_checks_finding *f)
{
	read_least(m, f, "/proc/sys/kernel/threads-max", 2048,
		   "few kernel threads for the machine: sysctl kernel.threads-max");
}

static void read_workers(const struct wf_machine *m, struct wf_checks_finding *f)
{
	char where[PATH_MAX];
	unsigned int cpus = wf_machine_cpus(m), workers;
	long long quota = wf_machine_quota(m, where, sizeof(where));

	if (cpus == 0) {
		unreadable(f, "/proc/self/status");
		return;
	}
	workers = cpus;
	if (quota < 0) {
		found(f, WF_CHECKS_OK, "%u (CPUs allowed %u, no quota)", workers, cpus);
		return;
	}
	/* Part of a CPU still needs a worker to spend it. */
	if ((quota + 999) / 1000 < workers)
		workers = quota > 0 ? (unsigned int)((quota + 999) / 1000) : 1;
	found(f, quota < 1000 ? WF_CHECKS_WARN : WF_CHECKS_OK,
	      "%u (CPUs allowed %u, quota %lld.%02lld)", workers, cpus, quota / 1000,
	      quota % 1000 / 10);
	advise(f, "%s%.240s",
	       quota < 1000 ? "less than one CPU: threads stall when it is spent; " : "set by ",
	       where);
}

/* Every vector has AT_PAGESZ; without it there is no vector to look at. */
static bool has_auxv(const struct wf_machine *m, struct wf_checks_finding *f)
{
	uint64_t page;

	if (wf_machine_auxv(m, AT_PAGESZ, &page))
		return true;
	unreadable(f, "/proc/self/auxv");
	return false;
}

static void read_minsigstksz(const struct wf_machine *m, struct wf_checks_finding *f)
{
	uint64_t bytes;

	if (!has_auxv(m, f))
		return;
	if (!wf_machine_auxv(m, AUX_MINSIGSTKSZ, &bytes)) {
		found(f, WF_CHECKS_OK, "2048 (kernel before 5.14)");
		return;
	}
	found(f, bytes <= 8192 ? WF_CHECKS_OK : WF_CHECKS_WARN, "%llu", (unsigned long long)bytes);
	if (bytes > 8192)
		advise(f, "a program's sigaltstack of the old SIGSTKSZ, 8192, is too small here");
}

static void read_rseq(const struct wf_machine *m, struct wf_checks_finding *f)
{
	uint64_t bytes;

	if (!has_auxv(m, f))
		return;
	if (wf_machine_auxv(m, AUX_RSEQ_FEATURE_SIZE, &bytes))
		found(f, WF_CHECKS_OK, "%llu bytes", (unsigned long long)bytes);
	else
		found(f, WF_CHECKS_OK, "not announced (kernel before 6.3)");
}

static void read_ptrace(const struct wf_machine *m, struct wf_checks_finding *f)
{
	static const char *const meaning[] = { "own processes", "children only", "root only",
					       "nobody" };
	long long scope;

	if (!wf_machine_number(m, "/proc/sys/kernel/yama/ptrace_scope", &scope)) {
		found(f, WF_CHECKS_OK, "no yama");
		return;
	}
	if (scope < 0 || scope > 3)
		scope = 3;
	found(f, scope == 0 || (scope < 3 && geteuid() == 0) ? WF_CHECKS_OK : WF_CHECKS_WARN,
	      "%lld (%s)", scope, meaning[scope]);
	if (f->level == WF_CHECKS_WARN)
		advise(f, "weft dump and debuggers cannot look into a running program%s",
		       scope < 3 ? "; root can" : " until the next boot");
}

static void read_clocksource(const struct wf_machine *m, struct wf_checks_finding *f)
{
	static const char path[] =
		"/sys/devices/system/clocksource/clocksource0/current_clocksource";
	static const char *const fast[] = { "tsc", "kvm-clock", "hyperv_clocksource_tsc_page" };
	char name[64];

	if (!wf_machine_line(m, path, name, sizeof(name))) {
		unreadable(f, path);
		return;
	}
	for (size_t i = 0; i < sizeof(fast) / sizeof(fast[0]); i++) {
		if (strcmp(name, fast[i]) == 0) {
			found(f, WF_CHECKS_OK, "%s", name);
			return;
		}
	}
	found(f, WF_CHECKS_WARN, "%s", name);
	advise(f, "reading the time takes a system call or slow hardware; tsc is wanted");
}

static void read_lock_fence(const struct wf_machine *m, struct wf_checks_finding *f)
{
	char vendor[64], family[16], model[16], name[128] = "";
	long number;

	if (!wf_machine_cpu_says(m, "vendor_id", vendor, sizeof(vendor)) ||
	    !wf_machine_cpu_says(m, "cpu family", family, sizeof(family)) ||
	    !wf_machine_cpu_says(m, "model", model, sizeof(model))) {
		unreadable(f, "/proc/cpuinfo");
		return;
	}
	(void)wf_machine_cpu_says(m, "model name", name, sizeof(name));
	number = strtol(model, NULL, 10);
	if (strcmp(vendor, "AuthenticAMD") != 0 || strcmp(family, "15") != 0 || number < 32 ||
	    number > 63) {
		found(f, WF_CHECKS_OK, "yes");
		return;
	}
	found(f, WF_CHECKS_FAIL, "no: %s", *name ? name : "an Opteron of revision E");
	advise(f,
	       "erratum 147: locks of any program without a fence behind each may fail here, once in a "
	       "long while, and lose data; replace this processor");
}

const struct wf_check wf_checks[] = {
	{ "library", "library to preload", WF_CHECKS_FAIL,
	  "weft run names this library in LD_PRELOAD. It is looked for at WEFT_LIBRARY, then beside\n"
	  "the command: ../lib, ../lib/x86_64-linux-gnu, ../lib64, or a build tree.",
	  read_library },
	{ "kernel", "kernel", WF_CHECKS_FAIL,
	  "weft needs the FSGSBASE instructions, which Linux allows since 5.9. Later kernels add time-outs\n"
	  "of the poller in nanoseconds (5.11), waits for futexes, children and the disk in io_uring\n"
	  "(6.7), and guard pages without mappings (6.13).",
	  read_kernel },
	{ "fsgsbase", "CPU writes FS and GS base", WF_CHECKS_FAIL,
	  "Every thread has its own thread pointer in FS, and weft keeps the kernel thread's own data at\n"
	  "GS. The FSGSBASE instructions write both without a system call; without them programs run on\n"
	  "plain NPTL. Bit 1 of AT_HWCAP2 tells.",
	  read_fsgsbase },
	{ "lock-fence", "locked instructions are fences", WF_CHECKS_FAIL,
	  "On AMD's Opterons and Athlons 64 of revision E (family 15, models 32 to 63) a load may be done\n"
	  "before the locked instruction in front of it: erratum 147. The locks of libweft have a fence\n"
	  "more there; those of libc and of the program have none.",
	  read_lock_fence },
	{ "guard", "MADV_GUARD_INSTALL", WF_CHECKS_WARN,
	  "A guard page below each stack catches overflows. Since Linux 6.13 a guard takes no mapping\n"
	  "of its own, so a million guarded stacks fit into a few mappings.",
	  read_guard },
	{ "io-uring", "io_uring", WF_CHECKS_WARN,
	  "Futexes that processes share and children are no descriptors that could be polled: a thread\n"
	  "that waits for one holds a kernel thread. From 16 such threads on they wait in a ring of\n"
	  "io_uring (6.7), with one kernel thread for all. Reads that wait for the disk do so from 8 to\n"
	  "96 on, in another. All else goes through epoll.",
	  read_io_uring },
	{ "epoll-pwait2", "epoll_pwait2", WF_CHECKS_WARN,
	  "An idle worker that expects work soon naps in the poller for a fraction of a millisecond.\n"
	  "epoll_pwait2 takes nanoseconds, the older call milliseconds. Timers of programs do not\n"
	  "depend on it.",
	  read_epoll },
	{ "patch", "text can be patched", WF_CHECKS_FAIL,
	  "weft replaces the syscall instructions of libc by jumps. For that it makes a private mapping\n"
	  "of the file writable and then executable again. SELinux, PR_SET_MDWE and the\n"
	  "MemoryDenyWriteExecute= of systemd may forbid that; programs then run on plain NPTL.",
	  read_patch },
	{ "seccomp", "seccomp filter", WF_CHECKS_WARN,
	  "A filter, usually of a container, may refuse calls that weft makes and the program does not.",
	  read_seccomp },
	{ "calls", "calls of weft's own", WF_CHECKS_FAIL,
	  "Calls that the runtime makes and few programs do: membarrier above all. A filter that refuses\n"
	  "them changes how programs run; one that kills for them ends each that makes a thread. Each is\n"
	  "tried in a child. A filter that a program sets up itself cannot be known from here.",
	  read_calls },
	{ "nofile", "open files", WF_CHECKS_WARN,
	  "RLIMIT_NOFILE bounds the number of connections long before weft does.", read_nofile },
	{ "nproc", "kernel threads of the user", WF_CHECKS_WARN,
	  "RLIMIT_NPROC counts kernel threads. weft's workers and helpers are some dozen; threads of the\n"
	  "program are not counted.",
	  read_nproc },
	{ "pids", "tasks of the control group", WF_CHECKS_WARN,
	  "pids.max of the control group and of all groups above it counts kernel threads and processes\n"
	  "(TasksMax= of systemd, --pids-limit of containers). Where none can be made any more, threads\n"
	  "share those that there are, and take turns in calls that block.",
	  read_pids },
	{ "addresses", "address space", WF_CHECKS_WARN,
	  "RLIMIT_AS bounds the stacks of threads, of 8 MiB each unless a program says otherwise. What weft\n"
	  "reserves for its tables is 720 MiB, and under a limit about 4 % of it.",
	  read_addresses },
	{ "map-count", "vm.max_map_count", WF_CHECKS_WARN,
	  "Without MADV_GUARD_INSTALL every stack takes two mappings, and this is their number.",
	  read_map_count },
	{ "pid-max", "kernel.pid_max", WF_CHECKS_WARN,
	  "Kernel threads take process IDs, threads of a program under weft do not. What blocks in the\n"
	  "kernel still needs kernel threads, for a time.",
	  read_pid_max },
	{ "threads-max", "kernel.threads-max", WF_CHECKS_WARN,
	  "The number of kernel threads of the whole machine.", read_threads_max },
	{ "workers", "workers", WF_CHECKS_WARN,
	  "weft starts as many workers as CPUs are allowed by the affinity mask and by the CPU quota of\n"
	  "the control group and of all groups above it (cpu.max, cpu.cfs_quota_us), rounded up.\n"
	  "More workers than that would only be throttled. weft run --workers sets another number.",
	  read_workers },
	{ "minsigstksz", "least signal stack", WF_CHECKS_WARN,
	  "AT_MINSIGSTKSZ is the size of a signal frame with all vector registers of this CPU. weft's own\n"
	  "signal stacks follow it; a program's may be too small.",
	  read_minsigstksz },
	{ "rseq", "restartable sequences", WF_CHECKS_OK,
	  "glibc registers an rseq area for each thread. Under weft the kernel does not know it: the area\n"
	  "keeps its initial CPU number of -1, so sched_getcpu() asks the kernel, and who has sequences\n"
	  "of his own (an allocator with a cache for each CPU) must do without.",
	  read_rseq },
	{ "ptrace", "ptrace scope", WF_CHECKS_WARN,
	  "kernel.yama.ptrace_scope decides who may look into a stuck process from outside: weft dump\n"
	  "and debuggers need that right.",
	  read_ptrace },
	{ "clocksource", "clock source", WF_CHECKS_WARN,
	  "Slices and timers read the clock often. With tsc, or a paravirtual clock that is read through\n"
	  "the vDSO, that takes some 25 ns.",
	  read_clocksource },
};

const size_t wf_checks_nr = sizeof(wf_checks) / sizeof(wf_checks[0]);

const char *wf_checks_level_name(enum wf_checks_level level)
{
	static const char *const names[] = {
		[WF_CHECKS_OK] = "ok",
		[WF_CHECKS_SKIPPED] = "skip",
		[WF_CHECKS_WARN] = "warn",
		[WF_CHECKS_FAIL] = "fail",
	};

	return names[level];
}

void wf_checks_run(const struct wf_check *c, const struct wf_machine *m,
		   struct wf_checks_finding *out)
{
	*out = (struct wf_checks_finding){ .level = WF_CHECKS_OK };
	c->read(m, out);
}
