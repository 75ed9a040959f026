// SPDX-License-Identifier: Apache-2.0
/*
 * Message queues and semaphores of POSIX and System V.
 *
 * A POSIX queue is a descriptor: an attempt with a time limit that is over does not wait, and the thread
 * parks until the queue is ready. System V knows no such thing: what cannot be done at once is waited for on
 * a kernel thread that has handed its worker on.
 */
#include "linux/calls.h"
#include "linux/fdwait.h"

#include <sys/epoll.h>

#define CLOCK_REALTIME 0
#define IPC_NOWAIT 04000

/* (a) A notification was asked for: the kernel gives none while it knows of a reader that waits. */
static uint32_t has_notify;

long sysc_mq_notify(struct wf_frame *f)
{
	wf_store_relaxed(&has_notify, 1u);
	return lx_blocking(f, false);
}

static long wait_for_queue(struct wf_frame *f, uint32_t events)
{
	const struct __kernel_timespec past = { 0, 0 };
	struct lx_fdwait w;
	long ret;

	lx_fdwait_init(&w, (int)WF_ARG0(f), events);
	if (WF_ARG4(f)) {
		ret = lx_deadline_absolute((const void *)WF_ARG4(f), CLOCK_REALTIME, &w.deadline);
		if (ret < 0)
			return ret;
	}
	w.has_deadline = true; /* a queue that is O_NONBLOCK says EAGAIN itself */
	for (;;) {
		ret = LX_TRY(&w, sys5(f->nr, w.use.fd, WF_ARG1(f), WF_ARG2(f), WF_ARG3(f), &past));
		if (ret != -ETIMEDOUT || w.is_late)
			return lx_fdwait_done(&w, ret);
		ret = lx_fdwait_park(&w);
		if (ret == -EINTR)
			ret = -ERESTARTSYS; /* the time limit is a point in time */
		if (ret == -EPERM)
			ret = lx_blocking(f, true);
		if (ret)
			return lx_fdwait_done(&w, ret);
	}
}

long sysc_mq_timedsend(struct wf_frame *f)
{
	return wait_for_queue(f, EPOLLOUT);
}

long sysc_mq_timedreceive(struct wf_frame *f)
{
	return wf_load_relaxed(&has_notify) ? lx_blocking(f, true) : wait_for_queue(f, EPOLLIN);
}

long sysc_msgsnd(struct wf_frame *f)
{
	long ret = sys4(__NR_msgsnd, WF_ARG0(f), WF_ARG1(f), WF_ARG2(f), WF_ARG3(f) | IPC_NOWAIT);

	return ret == -EAGAIN && !(WF_ARG3(f) & IPC_NOWAIT) ? lx_blocking(f, true) : ret;
}

long sysc_msgrcv(struct wf_frame *f)
{
	long ret = sys5(__NR_msgrcv, WF_ARG0(f), WF_ARG1(f), WF_ARG2(f), WF_ARG3(f),
			WF_ARG4(f) | IPC_NOWAIT);

	return ret == -ENOMSG && !(WF_ARG4(f) & IPC_NOWAIT) ? lx_blocking(f, true) : ret;
}

/* IPC_NOWAIT is said per operation; no time at all says the same for all of them. */
long sysc_semop(struct wf_frame *f)
{
	const struct __kernel_timespec none = { 0, 0 };
	int64_t deadline;
	long ret = 0;

	if (f->nr == __NR_semtimedop && WF_ARG3(f))
		ret = lx_deadline_relative((const void *)WF_ARG3(f), &deadline);
	if (ret < 0)
		return ret;
	do
		ret = sys4(__NR_semtimedop, WF_ARG0(f), WF_ARG1(f), WF_ARG2(f), &none);
	while (ret == -EINTR); /* a kick: never restarted by the kernel */
	return ret == -EAGAIN ? lx_blocking(f, true) : ret;
}
