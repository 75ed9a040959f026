// SPDX-License-Identifier: Apache-2.0
/*
 * Waits of the kernel's own that let in signals for as long as they last: io_pgetevents and io_uring_enter. The mask is
 * ours to change; the kernel's is that of a kernel thread, which takes no signal of the program, and gets none.
 *
 * A signal that is pending already and is let in ends the wait, too. But the kernel looks first whether there is
 * anything to be had, and so do we: a call without time to wait.
 *
 * Called by: table.c, uring.c.
 */
#include "linux/masked.h"
#include "linux/call.h"
#include "linux/calls.h"
#include "linux/pollwait.h"
#include "linux/sigwant.h"

#include <linux/time_types.h>

struct aio_mask {
	const void *mask;
	uint64_t bytes;
};

long lx_masked_wait(struct wf_frame *f, const long args[6], const struct lx_masked *how)
{
	struct lx_thread *self = lx_self();
	long ret;

	if (lx_poll_mask_enter(how->mask, how->bytes) < 0)
		return lx_blocking(
			f, false); /* the kernel says what is wrong, and what it did before */
	ret = -ERESTARTNOINTR;
	if (!self->has_saved_mask || !lx_signal_is_waiting(self))
		ret = lx_blocking_call((long)f->nr, args, how->is_certain, LX_RESTART_NEVER);
	if (ret == -ERESTARTNOINTR && self->has_saved_mask)
		ret = how->look(args);
	if (ret == -EINTR)
		return -ERESTARTNOHAND; /* with the mask: the handler's frame takes the old one */
	if (!self->has_saved_mask)
		return ret;
	if (lx_signal_is_waiting(self))
		(void)wf_fetch_or(&self->base.attention, WF_ATT_SIGNAL);
	else
		lx_poll_mask_leave(ret);
	return ret;
}

static long look_for_events(const long args[6])
{
	struct __kernel_timespec none = { 0 };
	long ret = sys6(__NR_io_pgetevents, args[0], args[1], args[2], args[3], &none, NULL);

	return ret ? ret : -EINTR;
}

long sysc_io_pgetevents(struct wf_frame *f)
{
	const long args[6] = { (long)WF_ARG0(f), (long)WF_ARG1(f), (long)WF_ARG2(f),
			       (long)WF_ARG3(f), (long)WF_ARG4(f), 0 };
	struct aio_mask user = { 0 };
	struct lx_masked how = { .look = look_for_events };

	if (WF_ARG5(f) && wf_arch_copy(&user, (const void *)WF_ARG5(f), sizeof(user)) < 0)
		return lx_blocking(f, false);
	how.mask = user.mask;
	how.bytes = user.bytes;
	return lx_masked_wait(f, args, &how);
}
