// SPDX-License-Identifier: Apache-2.0
/*
 * Spin lock for sections of a few dozen instructions inside the runtime.
 *
 * A holder is never preempted by weft (the runtime's own text is a no-preempt zone), but the kernel may
 * deschedule it: so a waiter gives its CPU away after a while instead of burning the holder's time.
 * Never held across a switch, a system call that can block, or a callback.
 */
#ifndef WF_BASE_SPIN_H
#define WF_BASE_SPIN_H

#include "base/atomic.h"

struct wf_spin {
	uint32_t held;
};

void wf_spin_lock_slow(struct wf_spin *s);

WF_INLINE bool wf_spin_trylock(struct wf_spin *s)
{
	if (wf_load_relaxed(&s->held) || wf_exchange(&s->held, 1u))
		return false;
	wf_lock_taken();
	return true;
}

WF_INLINE void wf_spin_lock(struct wf_spin *s)
{
	if (WF_UNLIKELY(wf_exchange(&s->held, 1u)))
		wf_spin_lock_slow(s);
	else
		wf_lock_taken();
}

/* The release pairs with the exchange of the next holder. */
WF_INLINE void wf_spin_unlock(struct wf_spin *s)
{
	wf_store_release(&s->held, 0u);
}

#endif
