// SPDX-License-Identifier: Apache-2.0
/* Waiting for one descriptor; see fdwait.h. */
#include "linux/fdwait.h"
#include "linux/call.h"
#include "linux/deadline.h"
#include "linux/sigwant.h"
#include "linux/scope.h"

#include <sys/epoll.h>

bool lx_fdwait_is_nonblocking(int fd)
{
	return wf_fd_facts(fd, EPOLLOUT).is_nonblocking;
}

/*
 * A datagram socket that was shut down for reading says EAGAIN for ever to who does not want to wait, and 0 to who
 * would. Asked for once an event has told of some end.
 */
static bool is_shut_down(const struct lx_fdwait *w)
{
	struct {
		int fd;
		short events, revents;
	} p = { .fd = w->use.fd, .events = EPOLLRDHUP };

	return w->events & EPOLLIN && wf_fd_is_ended(w->use.fd) && sys3(__NR_poll, &p, 1, 0) > 0 &&
	       p.revents & EPOLLRDHUP;
}

/* The result of wf_fd_wait(), as lx_fdwait_park() puts it. */
static long end_of_wait(struct lx_fdwait *w, int ret)
{
	w->has_waited = true;
	w->seq = wf_fd_seq(w->use.fd);
	w->is_late = ret == -ETIMEDOUT;
	if (w->is_late)
		return 0;
	if (ret == -EINTR && lx_scope_stops(lx_self()))
		return w->deadline == WF_NEVER ? -ERESTARTSYS : -EINTR;
	return ret == -EINTR ? 0 : ret;
}

long lx_fdwait_park(struct lx_fdwait *w)
{
	if (w->use.fd < 0)
		return -EBADF;
	if (w->is_late)
		return -EAGAIN;
	if (!w->has_deadline) {
		struct wf_fd_facts facts = wf_fd_facts(w->use.fd, w->events);

		if (facts.is_nonblocking)
			return -EAGAIN;
		w->has_deadline = true;
		if (facts.timeout_ns)
			w->deadline = lx_deadline_in(facts.timeout_ns);
	}
	if (is_shut_down(w))
		return -EPERM;
	return end_of_wait(w, wf_fd_wait(&w->use, w->events, w->seq, w->deadline));
}

long lx_fdwait_first(struct lx_fdwait *w)
{
	int ret = wf_fd_wait_if_empty(&w->use, w->seq);
	long left;

	if (ret <= 0)
		return end_of_wait(w, ret);
	left = wf_fd_is_empty(w->use.fd, w->seq) ? lx_fdwait_park(w) : 0;
	return left == -EAGAIN || left == -EPERM ? 0 : left;
}

long lx_fdwait_give_up(struct lx_fdwait *w, struct wf_frame *f)
{
	long args[6] = { w->use.fd,        (long)WF_ARG1(f), (long)WF_ARG2(f),
			 (long)WF_ARG3(f), (long)WF_ARG4(f), (long)WF_ARG5(f) };

	return lx_fdwait_done(w, lx_blocking_call((long)f->nr, args, false, LX_RESTART_SYS));
}

bool lx_fdwait_is_over(struct lx_fdwait *w, struct wf_frame *f, long *ret)
{
	if (*ret == -EAGAIN) {
		*ret = lx_fdwait_park(w);
		if (*ret == 0)
			return false;
		if (*ret == -EPERM) {
			*ret = lx_fdwait_give_up(w, f);
			return true;
		}
	}
	(void)lx_fdwait_done(w, *ret);
	return true;
}

bool lx_fdwait_is_ready(int fd, uint32_t events)
{
	struct {
		int fd;
		short events, revents;
	} p = { fd, (short)events, 0 };

	return sys3(__NR_poll, &p, 1, 0) != 0;
}

long lx_fdwait_until_ready(struct lx_fdwait *w)
{
	while (!LX_TRY(w, lx_fdwait_is_ready(w->use.fd, w->events))) {
		long ret = lx_fdwait_park(w);

		if (ret == -EPERM || (ret == -EAGAIN && !w->is_late))
			return 0;
		if (ret < 0)
			return ret;
	}
	return 1;
}

long lx_fdwait_poll_then_call(struct wf_frame *f, int fd, uint32_t events)
{
	return lx_fdwait_poll_then_call_if(f, fd, events, NULL);
}

long lx_fdwait_poll_then_call_if(struct wf_frame *f, int fd, uint32_t events,
				 bool (*may_wait)(const struct wf_frame *f))
{
	struct lx_fdwait w;
	bool is_ready;
	long ret;

	lx_fdwait_init(&w, fd, events);
	is_ready = may_wait && lx_fdwait_is_ready(fd, events);
	if (may_wait && !is_ready && !may_wait(f))
		return lx_blocking(f, false);
	do {
		ret = is_ready ? 1 : lx_fdwait_until_ready(&w);
		is_ready = false;
		if (ret < 0)
			break;
		ret = ret ? lx_breakable_on(f, w.use.fd) : lx_blocking(f, false);
	} while (ret == -EINTR); /* it waited, as somebody else was faster: so do we, but here */
	return lx_fdwait_done(&w, ret);
}
