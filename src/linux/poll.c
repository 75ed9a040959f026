// SPDX-License-Identifier: Apache-2.0
/*
 * poll, ppoll: the real call with a timeout of zero, repeated whenever one of its descriptors has moved (pollwait.c).
 */
#include "io/facts.h"
#include "linux/calls.h"
#include "linux/pollwait.h"
#include "linux/room.h"
#include "linux/sigwant.h"
#include "linux/scope.h"

#include <linux/eventpoll.h>
#include <linux/poll.h>

#define FDS_PER_COPY 16
#define FEW_FDS (LX_ROOM_LARGE / sizeof(struct lx_poll_slot))

/* A kick of the runtime's own makes an empty poll() say EINTR. */
static long look(struct pollfd *fds, uint32_t nr)
{
	long ret;

	do
		ret = sys3(__NR_poll, fds, nr, 0);
	while (ret == -EINTR);
	return ret;
}

/* How many slots were filled, or -EFAULT. */
static long fill_slots(struct lx_poll_slot *slots, const struct pollfd *fds, uint32_t nr)
{
	struct pollfd some[FDS_PER_COPY];
	long filled = 0;

	for (uint32_t at = 0; at < nr; at += FDS_PER_COPY) {
		uint32_t n = WF_MIN(nr - at, FDS_PER_COPY);

		if (wf_arch_copy(some, fds + at, n * sizeof(*fds)) < 0)
			return -EFAULT;
		for (uint32_t i = 0; i < n; i++)
			if (some[i].fd >= 0)
				lx_poll_slot_init(&slots[filled++], some[i].fd,
						  lx_poll_events((uint16_t)some[i].events), false);
	}
	return filled;
}

/* The first look is spared when it would find nothing: each is asked for input, and a read has just found none. */
static bool is_quiet(const struct lx_poll_slot *slots, uint32_t nr)
{
	const uint32_t known = EPOLLIN | EPOLLPRI | EPOLLERR | EPOLLHUP;

	for (uint32_t i = 0; i < nr; i++)
		if (slots[i].waiter.events & ~known ||
		    !wf_fd_is_quiet(slots[i].waiter.fd, slots[i].seq))
			return false;
	return nr > 0;
}

static long look_and_sleep(struct pollfd *fds, uint32_t nr, struct lx_poll_slot *slots,
			   uint32_t nr_slots, int64_t deadline)
{
	struct lx_thread *self = lx_self();
	bool is_late = false;

	for (bool is_first = true;; is_first = false) {
		long ret = 0;

		lx_poll_arm(slots, nr_slots);
		if (!is_first || nr_slots < nr || !is_quiet(slots, nr_slots))
			ret = look(fds, nr);
		if (ret)
			return ret;
		if (lx_scope_stops(self))
			return -ERESTARTNOHAND;
		if (is_late)
			return 0;
		if (WF_UNLIKELY(wf_fd_is_private())) {
			long args[6] = { (long)fds, nr };

			return lx_poll_in_kernel(__NR_ppoll, args, 2, deadline);
		}
		is_late = lx_poll_sleep(slots, nr_slots, deadline) == WF_WAKE_TIMEOUT;
	}
}

/*
 * With a mask of its own even a call that does not wait gives pending signals their chance:
 * programs use it for just that. Without one, the signal comes when the call is over.
 */
static long only_look(struct pollfd *fds, uint32_t nr)
{
	struct lx_thread *self = lx_self();
	long ret = look(fds, nr);

	return !ret && self->has_saved_mask && lx_signal_is_waiting(self) ? -ERESTARTNOHAND : ret;
}

static long poll_until(struct pollfd *fds, uint32_t nr, int64_t deadline)
{
	size_t bytes = nr * sizeof(struct lx_poll_slot);
	struct lx_poll_slot *slots;
	long ret;

	if (deadline == LX_POLL_NOW)
		return only_look(fds, nr);
	/* Is so large a number in order? Let the kernel say so before we make room for it. */
	if (nr > FEW_FDS) {
		ret = look(fds, nr);
		if (ret)
			return ret;
	}
	slots = lx_room_get(bytes);
	if (!slots)
		return -ENOMEM;
	ret = fill_slots(slots, fds, nr);
	if (ret >= 0)
		ret = look_and_sleep(fds, nr, slots, (uint32_t)ret, deadline);
	lx_room_put(slots, bytes);
	return ret;
}

long sysc_poll(struct wf_frame *f)
{
	return poll_until((struct pollfd *)WF_ARG0(f), (uint32_t)WF_ARG1(f),
			  lx_poll_deadline_ms((int)WF_ARG2(f)));
}

long sysc_ppoll(struct wf_frame *f)
{
	void *user_time = (void *)WF_ARG2(f);
	int64_t deadline;
	long ret = lx_poll_deadline_timespec(user_time, &deadline);

	if (ret == 0)
		ret = lx_poll_mask_enter((const void *)WF_ARG3(f), WF_ARG4(f));
	if (ret < 0)
		return ret;
	ret = poll_until((struct pollfd *)WF_ARG0(f), (uint32_t)WF_ARG1(f), deadline);
	lx_poll_mask_leave(ret);
	return lx_poll_time_left(user_time, 1, deadline, ret);
}
