// SPDX-License-Identifier: Apache-2.0
/*
 * More workers than processors: some kernel threads that carry a worker wait for a processor, a slice of the kernel's at a time,
 * and a thread that was woken for such a worker would wait with it.
 *
 * A kernel thread that has a processor looks into its inbox some microseconds after it was kicked. If it does not, the monitor
 * offers what is in there to the others, and kicks these; the first that has a processor takes it over.
 *
 * The door must not wait itself: it asks the kernel for short slices, which go first. What it makes does not.
 *
 * Invariant: an inbox may be taken by anybody, whole, so a thread in it is pushed once, whoever comes first. Nothing relies on
 * the offer: the worker itself looks into its inbox when it runs.
 */
#ifndef WF_SCHED_CROWD_H
#define WF_SCHED_CROWD_H

#include "sched/runtime.h"

/* A kick that is not answered within that time found no processor. */
#define WF_CROWD_ANSWER_NS (200 * WF_US)

/* Are there more workers than processors? Before any kernel thread is made. */
void wf_crowd_count(void);
void wf_crowd_begin_door(void);
void wf_crowd_begin_carrier(void);

/* By the monitor, each time it tells w of a thread. True: w has not looked for long, and what it has is offered to others. */
bool wf_crowd_offer(struct wf_worker *w, int64_t now);

WF_INLINE bool wf_crowd_has_offer(void)
{
	return WF_UNLIKELY(wf_load_relaxed(&wf_rt.offers) != NULL);
}

/* The threads that were offered, oldest first, if they are still there: the caller's. */
struct wf_thread *wf_crowd_take(void);

#endif
