// SPDX-License-Identifier: Apache-2.0
/*
 * A timer that is faster than its handler: what it interrupts goes on for a moment between two of its signals.
 *
 * Natively a signal that comes while the handler runs is taken at once, and a handler that sets the timer anew is over
 * before the timer is. Here both take longer. When the handler returns the timer's next signal is there already, and would
 * be on top of all others each time: the handler of another signal, that came at that moment, would never begin.
 *
 * Called by: sigdeliver.c at the return of a handler, signals.c where a timer's signal comes, and the door.
 *
 * Invariant: a thread that is paced has its mark up, then looks whether the time is set, and sets it otherwise; the door takes the
 * time back, then every mark, then looks whether a signal waits. A poster looks at the mark after it has added one.
 */
#include "linux/abi.h"
#include "linux/sigpace.h"
#include "linux/sigqueue.h"
#include "linux/sigwant.h"
#include "sched/clock.h"
#include "sched/kick.h"
#include "sched/runtime.h"

#include <signal.h>

#define PACE_NS (50 * WF_US)

bool lx_signal_pace(struct lx_thread *t)
{
	const uint64_t set = ~t->sig_mask;
	int64_t none = 0;

	if (!lx_pending_is_timers(&t->pending, set) || !lx_pending_is_timers(&lx.shared, set))
		return false;
	wf_store_seq_cst(&t->is_paced, true);
	if (wf_cas(&lx.paced_until, &none, wf_now() + PACE_NS))
		wf_kick(wf_rt.door);
	return true;
}

int64_t lx_signal_paced_until(int64_t now)
{
	int64_t until = wf_load_seq_cst(&lx.paced_until);
	uint32_t n;

	if (!until)
		return WF_NEVER;
	if (now < until)
		return until;
	wf_store_seq_cst(&lx.paced_until, (int64_t)0);
	n = wf_thread_slots();
	for (uint32_t i = 0; i < n; i++) {
		struct lx_thread *t = lx_of(wf_thread_slot(i));

		if (!wf_load_relaxed(&t->is_paced))
			continue;
		wf_store_seq_cst(&t->is_paced, false);
		if (lx_signal_is_wanted(t))
			lx_signal_notify(t);
	}
	return WF_NEVER;
}
