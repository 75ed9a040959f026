// SPDX-License-Identifier: Apache-2.0
/*
 * Tries kernel features one by one.
 *
 * Called by: checks.c. Invariant: a probe that could end the process (a seccomp filter may kill instead of
 * refusing) runs in a child.
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

/* Runs the probe in a child. Returns what it returned; -EPERM if something killed it. */
static int in_child(int (*probe)(void))
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
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -EPERM;
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

	if (fd < 0)
		return -errno;
	mem = mmap(NULL, page, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	if (mem == MAP_FAILED)
		return -errno;
	if (mprotect((void *)mem, page, PROT_READ | PROT_WRITE) < 0)
		return -errno;
	mem[0] = 0; /* SELinux asks whether a page was written */
	return mprotect((void *)mem, page, PROT_READ | PROT_EXEC) < 0 ? -errno : 0;
}

int wf_probes_guard(void)
{
	return in_child(install_guard);
}

int wf_probes_io_uring(void)
{
	return in_child(set_up_ring);
}

int wf_probes_epoll_pwait2(void)
{
	return in_child(wait_with_ns);
}

int wf_probes_patch_text(void)
{
	return in_child(patch_text);
}

int wf_probes_mdwe(void)
{
	int flags = prctl(GET_MDWE, 0, 0, 0, 0);

	return flags < 0 ? -errno : flags;
}
