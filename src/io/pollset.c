// SPDX-License-Identifier: Apache-2.0
/* The epoll set; see pollset.h. */
#include "io/pollset.h"

#include "io/fdtab.h"
#include "sched/clock.h"
#include "sys/syscall.h"

#include <errno.h>
#include <sys/epoll.h>

static int set_fd = -1; /* (c) */

int wf_pollset_init(void)
{
	set_fd = wf_fdtab_move_high((int)sys1(__NR_epoll_create1, EPOLL_CLOEXEC));
	return WF_MIN(set_fd, 0);
}

void wf_pollset_forget(bool are_others)
{
	if (set_fd >= 0 && !are_others)
		(void)sys_close(set_fd);
	set_fd = -1;
}

bool wf_pollset_is(int fd)
{
	return fd == set_fd;
}

int wf_pollset_add(int fd, uint32_t events, uint64_t tag)
{
	struct epoll_event ev = { .events = events | EPOLLET, .data.u64 = tag };
	long ret = sys4(__NR_epoll_ctl, set_fd, EPOLL_CTL_ADD, fd, &ev);

	if (ret == -EEXIST)
		ret = sys4(__NR_epoll_ctl, set_fd, EPOLL_CTL_MOD, fd, &ev);
	return (int)ret;
}

void wf_pollset_remove(int fd)
{
	(void)sys4(__NR_epoll_ctl, set_fd, EPOLL_CTL_DEL, fd, NULL);
}

long wf_pollset_wait(struct epoll_event *events, int max, int64_t timeout_ns)
{
	struct __kernel_timespec ts = { timeout_ns / WF_SEC, timeout_ns % WF_SEC };
	int64_t ms = timeout_ns < 0 ? -1 : (timeout_ns + WF_MS - 1) / WF_MS;
	long n = sys6(__NR_epoll_pwait2, set_fd, events, max, timeout_ns < 0 ? NULL : &ts, NULL, 0);

	if (n == -ENOSYS)
		n = sys6(__NR_epoll_pwait, set_fd, events, max, WF_MIN(ms, 1 << 30), NULL, 0);
	return n;
}
