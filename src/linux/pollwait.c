// SPDX-License-Identifier: Apache-2.0
/*
 * Waiting for any of several descriptors: the sleep that poll.c, select.c and epoll.c share, and their times and masks.
 *
 * The kernel answers every question about readiness: a call is the real call with a timeout of
 * zero, repeated whenever one of its descriptors has moved. So results and errors are the kernel's
 * own; what is ours is only when to ask again.
 *
 * No edge is lost, because a round has this order:
 *
 *	arm:   remember how many events each descriptor has had so far;
 *	look:  the real call finds nothing;
 *	sleep: in state PARKING, put a waiter on each descriptor, then park.
 *
 * Something becomes ready after the look, or the look would have found it. If the poller knew the
 * descriptor when we armed, this raises a new event, and that is delivered either before the waiter
 * is on the list, and the count differs from ours: do not sleep; or afterwards, and it finds the
 * waiter. If the poller did not know it, enqueueing registers it, and registering raises an event
 * for what is ready already. An event delivered between the count and the look only costs a round.
 * In PARKING a wake-up is remembered, so it does not matter how far the queueing has got. A signal
 * is the same story: whoever posts one sets it pending and then looks for our state; we set our
 * state and then look for pending ones.
 *
 * Readiness wins over time and signals: every wake-up, whatever its reason, is followed by a look.
 */
#include "linux/call.h"
#include "linux/deadline.h"
#include "linux/pollwait.h"
#include "linux/signals.h"
#include "linux/sigwant.h"
#include "sched/clock.h"

#include <linux/eventpoll.h>
#include <linux/personality.h>
#include <linux/poll.h>

uint32_t lx_poll_events(uint32_t events)
{
	uint32_t out = 0;

	if (events & (POLLIN | POLLRDNORM | POLLRDBAND | POLLMSG | POLLRDHUP))
		out |= EPOLLIN;
	if (events & (POLLOUT | POLLWRNORM | POLLWRBAND))
		out |= EPOLLOUT;
	if (events & (POLLPRI | POLLRDBAND))
		out |= EPOLLPRI;
	return out;
}

void lx_poll_slot_init(struct lx_poll_slot *slot, int fd, uint32_t events, bool is_exclusive)
{
	*slot = (struct lx_poll_slot){
		.waiter = {
			.thread = wf_self(),
			.events = events | EPOLLERR | EPOLLHUP,
			.fd = fd,
			.is_exclusive = is_exclusive,
		},
	};
}

void lx_poll_arm(struct lx_poll_slot *slots, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++)
		slots[i].seq = wf_fd_seq(slots[i].waiter.fd);
}

/*
 * Will this descriptor never wake us, though it may become ready? Not so if the poller knows of
 * nothing to wait for (-EPERM: always ready, but not for what was asked), nor if it is closed:
 * Linux would go on waiting for the file, which nobody can reach any more. Nor is one waited for that our table has no
 * room for; select() also passes numbers beyond the kernel's table, which the kernel does not look at.
 */
static bool is_refused(const struct lx_poll_slot *slot, int ret)
{
	if (ret == -EPERM)
		return !wf_fd_has_room(slot->waiter.fd);
	return ret < 0 && ret != -EBADF;
}

bool lx_poll_enqueue(struct lx_poll_slot *slots, uint32_t nr, uint32_t *out_nr, bool *out_refused)
{
	*out_nr = 0;
	*out_refused = false;
	for (uint32_t i = 0; i < nr; i++) {
		int ret = wf_fd_enqueue(&slots[i].waiter, slots[i].seq, NULL);

		*out_nr = i + 1;
		if (ret > 0)
			return true;
		if (is_refused(&slots[i], ret))
			*out_refused = true;
	}
	return false;
}

void lx_poll_dequeue(struct lx_poll_slot *slots, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++)
		wf_fd_dequeue(&slots[i].waiter);
}

long lx_poll_in_kernel(long nr, long args[6], int time_arg, int64_t deadline)
{
	struct __kernel_timespec left;
	long ret;

	if (deadline != WF_NEVER) {
		int64_t ns = WF_MAX(deadline - wf_now(), 0);

		left = (struct __kernel_timespec){ ns / WF_SEC, ns % WF_SEC };
		args[time_arg] = (long)&left; /* the kernel counts it down */
	}
	ret = lx_blocking_call(nr, args, false, LX_RESTART_NEVER);
	return ret == -EINTR || ret == -ERESTARTNOINTR ? -ERESTARTNOHAND : ret;
}

enum wf_reason lx_poll_sleep(struct lx_poll_slot *slots, uint32_t nr, int64_t deadline)
{
	struct lx_thread *self = lx_self();
	uint32_t nr_enqueued;
	bool has_refused;
	int64_t until = deadline;
	enum wf_reason reason = WF_WAKE_NONE;

	wf_park_begin(WF_INTR | WF_REACHED, WF_WAIT_POLL, nr);
	if (lx_poll_enqueue(slots, nr, &nr_enqueued, &has_refused))
		reason = WF_WAKE_EVENT;
	if (has_refused)
		until = WF_MIN(deadline, wf_now() + LX_POLL_LOOK_AGAIN_NS);
	if (reason == WF_WAKE_NONE && lx_signal_is_waiting(self))
		reason = WF_WAKE_INTERRUPTED;
	if (reason == WF_WAKE_NONE)
		reason = wf_park(until);
	else
		(void)wf_park_abort(); /* whatever came first: the caller looks */
	lx_poll_dequeue(slots, nr_enqueued);
	return reason == WF_WAKE_TIMEOUT && until < deadline ? WF_WAKE_EVENT : reason;
}

long lx_poll_deadline(int64_t sec, int64_t nsec, int64_t *out_deadline)
{
	if (sec < 0 || nsec < 0 || nsec >= WF_SEC)
		return -EINVAL;
	if (!sec && !nsec)
		*out_deadline = LX_POLL_NOW;
	else
		*out_deadline = lx_deadline_in(sec < WF_NEVER / WF_SEC ? sec * WF_SEC + nsec
								       : WF_NEVER);
	return 0;
}

int64_t lx_poll_deadline_ms(int ms)
{
	if (ms < 0)
		return WF_NEVER;
	return ms ? lx_deadline_in(ms * WF_MS) : LX_POLL_NOW;
}

long lx_poll_deadline_timespec(const void *user_timespec, int64_t *out_deadline)
{
	struct __kernel_timespec ts;

	if (!user_timespec) {
		*out_deadline = WF_NEVER;
		return 0;
	}
	if (wf_arch_copy(&ts, user_timespec, sizeof(ts)) < 0)
		return -EFAULT;
	return lx_poll_deadline(ts.tv_sec, ts.tv_nsec, out_deadline);
}

long lx_poll_time_left(void *user, int64_t unit_ns, int64_t deadline, long ret)
{
	int64_t left[2], ns;

	/* The kernel knows whose personality it is: a bound thread's own, or the process's. */
	if (WF_UNLIKELY(user && wf_load_relaxed(&lx.has_sticky_timeouts)) &&
	    sys1(__NR_personality, LX_PERSONALITY_QUERY) & STICKY_TIMEOUTS)
		return ret == -ERESTARTNOHAND ? -EINTR : ret;
	/* A time too long to be told from for ever has not become shorter. */
	if (!user || deadline == LX_POLL_NOW || deadline >= WF_NEVER - 1)
		return ret;
	ns = WF_MAX(deadline - wf_now(), 0);
	left[0] = ns / WF_SEC;
	left[1] = ns % WF_SEC / unit_ns;
	if (wf_arch_copy(user, left, sizeof(left)) < 0 && ret == -ERESTARTNOHAND)
		return -EINTR;
	return ret;
}

long lx_poll_mask_enter(const void *user_mask, size_t bytes)
{
	struct lx_thread *self = lx_self();
	uint64_t mask;

	if (!user_mask)
		return 0;
	if (bytes != sizeof(mask))
		return -EINVAL;
	if (wf_arch_copy(&mask, user_mask, sizeof(mask)) < 0)
		return -EFAULT;
	self->sig_saved_mask = self->sig_mask;
	self->has_saved_mask = true;
	lx_signal_set_mask(self, mask);
	return 0;
}

void lx_poll_mask_leave(long ret)
{
	struct lx_thread *self = lx_self();

	if (!self->has_saved_mask || ret == -ERESTARTNOHAND || ret == -EINTR)
		return;
	self->has_saved_mask = false;
	lx_signal_set_mask(self, self->sig_saved_mask);
}
