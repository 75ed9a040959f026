// SPDX-License-Identifier: Apache-2.0
/* The calls of one process on another by its pid or pidfd: its memory, its descriptors, what it leaves. */
#include "beside.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>

#ifndef SYS_process_madvise
#define SYS_process_madvise 440
#endif
#ifndef SYS_process_mrelease
#define SYS_process_mrelease 448
#endif

static char here[64], there[64] = "of the parent";
static int ends[2]; /* the child lives as long as the other end is open */

static pid_t begin_child(void)
{
	pid_t child;
	char c;

	CHECK_SYS(socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
	child = (pid_t)CHECK_SYS(fork());
	if (child == 0) {
		close(ends[0]);
		strcpy(there, "of the child");
		(void)!write(ends[1], "r", 1);
		(void)!read(ends[1], &c, 1);
		_exit(strcmp(there, "written") != 0 && strcmp(there, "of the child") != 0);
	}
	close(ends[1]);
	CHECK_EQ(read(ends[0], &c, 1), 1);
	return child;
}

static void end_child(pid_t child)
{
	close(ends[0]);
	reap(child);
}

static void memory(void)
{
	struct iovec mine = { here, sizeof(here) }, its = { there, sizeof(there) };
	pid_t child = begin_child();

	if (!is_refused(CALL(process_vm_readv, child, &mine, 1L, &its, 1L, 0L))) {
		CHECK_STR(here, "of the child");
		strcpy(here, "written");
		CHECK_EQ(CALL(process_vm_writev, child, &mine, 1L, &its, 1L, 0L), sizeof(here));
		memset(here, 0, sizeof(here));
		CHECK_EQ(CALL(process_vm_readv, child, &mine, 1L, &its, 1L, 0L), sizeof(here));
		CHECK_STR(here, "written");
		its.iov_base = NULL;
		CHECK_ERRNO(CALL(process_vm_writev, child, &mine, 1L, &its, 1L, 0L), EFAULT);
	}
	CHECK_STR(there, "of the parent");
	end_child(child);
}

static void own_memory(void)
{
	char from[8] = "itself", to[8] = "";
	struct iovec a = { from, sizeof(from) }, b = { to, sizeof(to) };

	if (!is_refused(CALL(process_vm_writev, getpid(), &a, 1L, &b, 1L, 0L)))
		CHECK_STR(to, "itself");
}

static void by_pidfd(void)
{
	pid_t child = begin_child();
	int pidfd = (int)CALL(pidfd_open, child, 0), fd;
	struct iovec its = { (void *)((uintptr_t)there & ~4095ul), 4096 };
	siginfo_t info;
	long ret;

	if (pidfd == -1) {
		CHECK(is_refused(-1));
		end_child(child);
		return;
	}
	fd = (int)CALL(pidfd_getfd, pidfd, ends[1], 0);
	if (fd == -1) {
		CHECK(is_refused(-1));
	} else {
		CHECK_EQ(write(fd, "x", 1), 1);
		CHECK_EQ(read(ends[0], here, 1), 1);
		CHECK_EQ(here[0], 'x');
		CHECK_ERRNO(CALL(pidfd_getfd, pidfd, 1000000, 0), EBADF);
		close(fd);
	}
	ret = CALL(process_madvise, pidfd, &its, 1L, (long)MADV_COLD, 0L);
	if (ret == -1)
		CHECK(is_refused(-1) || errno == EINVAL);
	else
		CHECK_EQ(ret, 4096);
	if (!is_refused(CALL(process_mrelease, pidfd, 0)))
		CHECK_EQ(errno, EINVAL); /* nobody kills it */
	close(ends[0]);
	CHECK_SYS(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT));
	if (!is_refused(CALL(process_mrelease, pidfd, 0)))
		CHECK_EQ(errno, ESRCH); /* nothing is left of it */
	reap(child);
	close(pidfd);
}

int main(void)
{
	start_beside();
	calls(memory, "memory of a child");
	calls(own_memory, "one's own");
	calls(by_pidfd, "by a pidfd");
	stop_beside();
	return finish();
}
