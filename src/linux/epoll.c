// SPDX-License-Identifier: Apache-2.0
/*
 * epoll_wait, epoll_pwait, epoll_pwait2 on a set of the program's own. Changing a set never blocks:
 * epoll_ctl is the kernel's.
 *
 * Called by: table.c. A set is itself a descriptor that becomes readable, so a wait is one slot of
 * poll.c; how a round of look and sleep misses nothing is told there. The poller sees the set in
 * edge-triggered mode: an item that becomes ready, or is added or changed while ready, is a new
 * edge even if others are ready already.
 *
 * Many threads may wait on one set, and one edge wakes one of them. The rest that it leaves (level-
 * triggered items, or more than fitted) raises no new edge. Hence the invariant: an edge is owed a
 * look by the thread that it woke, and that thread passes on what its look has left. A thread that
 * did not sleep owes nothing. Nor does an event that ends a direct wait reach others: what it leaves is passed on, too.
 */
#include "linux/call.h"
#include "linux/calls.h"
#include "linux/pollwait.h"
#include "linux/sigwant.h"
#include "linux/scope.h"
#include "sched/direct.h"

#include <linux/eventpoll.h>
#include <linux/poll.h>

#define USUAL_SLACK_NS                                                                             \
	(50 * WF_US) /* of a kernel thread, unless its program was started with another */

static void pass_on(int set)
{
	struct pollfd p = { .fd = set, .events = POLLIN };

	/*
	 * While our look took items off the set, somebody else's may have found nothing. Either it sleeps by now, and
	 * we see it, or it counts one event more when it lies down, and looks again.
	 */
	if (!wf_fd_touch(set))
		return;
	if (sys3(__NR_poll, &p, 1, 0) != 0) /* EINTR too: better one look too many */
		wf_fd_pass_on(set, EPOLLIN);
}

/*
 * In the kernel, while that is possible; the set must not be in the poller then, which every event would wake as
 * well. False: wait as usual, be it for the rest of the time.
 */
static bool wait_directly(const struct wf_frame *f, int64_t deadline, long *out)
{
	static uint32_t is_missing; /* (a) epoll_pwait2 */
	int64_t until = deadline;

	/* The kernel would be late by the slack of our kernel thread. */
	if (deadline != WF_NEVER && lx_self()->timer_slack_ns < USUAL_SLACK_NS)
		return false;
	if (!wf_direct_may_begin() || wf_load_relaxed(&is_missing) ||
	    !wf_fd_leave_poller((int)WF_ARG0(f)))
		return false;
	if (!lx_direct_wait((int)WF_ARG0(f), (void *)WF_ARG1(f), (long)WF_ARG2(f), &until, out) ||
	    (*out == 0 && until < deadline))
		return false;
	if (*out == -ENOSYS)
		wf_store_relaxed(&is_missing, 1u);
	return *out != -ENOSYS && *out != -EINTR && *out != -ERESTARTNOINTR;
}

/* The look behind it takes what there is. */
static bool is_late_in_kernel(int set, int64_t deadline)
{
	struct pollfd p = { .fd = set, .events = POLLIN };
	long args[6] = { (long)&p, 1 };

	return lx_poll_in_kernel(__NR_ppoll, args, 2, deadline) == 0;
}

static long wait_until(const struct wf_frame *f, int64_t deadline)
{
	struct lx_thread *self = lx_self();
	struct lx_poll_slot slot;
	bool is_late = deadline == LX_POLL_NOW, has_slept = false;
	int set = (int)WF_ARG0(f);
	long ret;

	if (!is_late && wait_directly(f, deadline, &ret)) {
		if (ret > 0)
			pass_on(set);
		return ret;
	}
	lx_poll_slot_init(&slot, set, EPOLLIN, true);
	for (;;) {
		lx_poll_arm(&slot, 1);
		ret = sys4(__NR_epoll_wait, set, WF_ARG1(f), WF_ARG2(f), 0);
		if (ret && has_slept)
			pass_on(set);
		if (ret || is_late)
			return ret;
		if (lx_scope_stops(self))
			return -EINTR;
		if (WF_UNLIKELY(wf_fd_is_private()))
			is_late = is_late_in_kernel(set, deadline);
		else
			is_late = lx_poll_sleep(&slot, 1, deadline) == WF_WAKE_TIMEOUT;
		has_slept = true;
	}
}

static long wait_masked(const struct wf_frame *f, int64_t deadline)
{
	long ret = lx_poll_mask_enter((const void *)WF_ARG4(f), WF_ARG5(f));

	if (ret < 0)
		return ret;
	ret = wait_until(f, deadline);
	lx_poll_mask_leave(ret);
	return ret;
}

long sysc_epoll_wait(struct wf_frame *f)
{
	return wait_until(f, lx_poll_deadline_ms((int)WF_ARG3(f)));
}

long sysc_epoll_pwait(struct wf_frame *f)
{
	return wait_masked(f, lx_poll_deadline_ms((int)WF_ARG3(f)));
}

long sysc_epoll_pwait2(struct wf_frame *f)
{
	int64_t deadline;
	long ret = lx_poll_deadline_timespec((const void *)WF_ARG3(f), &deadline);

	return ret < 0 ? ret : wait_masked(f, deadline);
}
