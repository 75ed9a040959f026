// SPDX-License-Identifier: Apache-2.0
/*
 * Tries kernel features one by one.
 *
 * Called by: checks.c, preflight.c. Invariant: a probe that could end the process (a seccomp filter may kill instead of
 * refusing) runs in a child, or is one that the program's start will make as well.
 */
#include "probes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Numbers of the kernel's interface, for libc headers that are older than it. */
#define GUARD_INSTALL 102
#define GET_MDWE 66
#define NR_IO_URING_SETUP 425
#define NR_IO_URING_REGISTER 427
#define URING_REGISTER_PROBE 8
#define URING_OP_WAITID 50
#define URING_OP_FUTEX_WAIT 51
#define NR_EPOLL_PWAIT2 441

/* Runs the probe in a child. Returns what it returned, or if_killed. */
static int in_child(int (*probe)(void), int if_killed)
{
	pid_t child = fork();
	int status;

	if (child < 0)
		return -errno;
	if (child == 0) {
		const struct rlimit no_core = { 0, 0 };

		(void)setrlimit(RLIMIT_CORE, &no_core);
		_exit(-probe() & 0xff); /* all error numbers are below 256 */
	}
	while (waitpid(child, &status, 0) < 0) {
		if (errno != EINTR)
			return -errno;
	}
	return WIFEXITED(status) ? -WEXITSTATUS(status) : if_killed;
}

static int install_guard(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *mem = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			 0);

	if (mem == MAP_FAILED)
		return -errno;
	return madvise(mem, page, GUARD_INSTALL) < 0 ? -errno : 0;
}

static int set_up_ring(void)
{
	uint32_t params[30] = { 0 }; /* struct io_uring_params is 120 bytes for ever */
	struct {
		uint8_t last_op, nr;
		uint16_t resv[7];
		struct {
			uint8_t op, resv;
			uint16_t flags;
			uint32_t resv2;
		} op[256];
	} probe = { 0 };
	int fd = (int)syscall(NR_IO_URING_SETUP, 4, params);

	if (fd < 0 || syscall(NR_IO_URING_REGISTER, fd, URING_REGISTER_PROBE, &probe, 256) < 0)
		return -errno;
	return probe.op[URING_OP_WAITID].flags & probe.op[URING_OP_FUTEX_WAIT].flags & 1
		       ? 0
		       : -EOPNOTSUPP;
}

static int wait_with_ns(void)
{
	const struct timespec now = { 0 };
	struct epoll_event event;
	int set = epoll_create1(EPOLL_CLOEXEC);

	if (set < 0)
		return -errno;
	return syscall(NR_EPOLL_PWAIT2, set, &event, 1, &now, NULL, 0) < 0 ? -errno : 0;
}

static int patch_text(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	volatile char *mem;
	int ret;

	if (fd < 0)
		return -errno;
	mem = mmap(NULL, page, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	ret = mem == MAP_FAILED ? -errno : 0;
	(void)close(fd);
	if (ret < 0)
		return ret;
	if (mprotect((void *)mem, page, PROT_READ | PROT_WRITE) < 0) {
		ret = -errno;
	} else {
		mem[0] = 0; /* SELinux asks whether a page was written */
		ret = mprotect((void *)mem, page, PROT_READ | PROT_EXEC) < 0 ? -errno : 0;
	}
	(void)munmap((void *)mem, page);
	return ret;
}

static size_t call_to_make;

/* Harmless as they are made here: asked with nothing to do, or in vain. */
static long make_call(void)
{
	static uint64_t words[32];
	const struct timespec now = { 0 };

	switch (call_to_make) {
	case 0:
		return syscall(SYS_membarrier, 0 /* MEMBARRIER_CMD_QUERY */, 0, 0);
	case 1:
		return syscall(SYS_epoll_create1, 0);
	case 2:
		return syscall(SYS_timerfd_create, CLOCK_MONOTONIC, 0);
	case 3:
		return syscall(SYS_rt_sigtimedwait, words, NULL, &now, sizeof(words[0]));
	case 4: /* no signal to nobody in particular */
		return syscall(SYS_rt_tgsigqueueinfo, getpid(), getpid(), 0, words);
	case 5:
		return syscall(SYS_rt_sigqueueinfo, getpid(), 0, words);
	case 6:
		return syscall(SYS_get_robust_list, 0, &words[0], &words[1]);
	case 7:
		return syscall(SYS_sched_getattr, 0, words, sizeof(words), 0);
	case 8:
		return syscall(SYS_mincore, words, 0, words);
	default:
		return syscall(SYS_personality, 0xffffffff);
	}
}

static int make_or_refuse(void)
{
	return make_call() < 0 && (errno == ENOSYS || errno == EPERM) ? -errno : 0;
}

bool wf_probes_call(size_t i, const char **out_name, int *out_ret)
{
	static const char *const names[] = {
		"membarrier",        "epoll_create1",   "timerfd_create",  "rt_sigtimedwait",
		"rt_tgsigqueueinfo", "rt_sigqueueinfo", "get_robust_list", "sched_getattr",
		"mincore",           "personality",
	};

	if (i >= sizeof(names) / sizeof(names[0]))
		return false;
	call_to_make = i;
	*out_name = names[i];
	*out_ret = in_child(make_or_refuse, -ECANCELED);
	return true;
}

int wf_probes_guard(void)
{
	return in_child(install_guard, -EPERM);
}

int wf_probes_io_uring(void)
{
	return in_child(set_up_ring, -EPERM);
}

int wf_probes_epoll_pwait2(void)
{
	return in_child(wait_with_ns, -EPERM);
}

int wf_probes_patch_text(void)
{
	return in_child(patch_text, -EPERM);
}

int wf_probes_patch_here(void)
{
	return patch_text();
}

int wf_probes_mdwe(void)
{
	int flags = prctl(GET_MDWE, 0, 0, 0, 0);

	return flags < 0 ? -errno : flags;
}
