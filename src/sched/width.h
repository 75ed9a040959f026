// SPDX-License-Identifier: Apache-2.0
/*
 * Whether all workers run threads, or as few as there is work for without waking another.
 *
 * Called by: monitor.c, at every tick; idle.c and worker.c, whose workers rest.
 *
 * Threads that share one lock, an interpreter's, for most of what they do cannot use a second processor, and pay for it:
 * whoever is woken there finds the lock taken or makes the one that had it wait, and what the lock protects moves from
 * cache to cache. Nothing that a scheduler sees of one wake-up tells such a program from one that runs twice as fast on
 * two processors. So it tries: where threads often change workers and take short turns, the monitor lets the program run
 * narrow and wide by turns for some milliseconds each, and keeps what serves more.
 *
 * Narrow: a worker that has run out of work rests, unless no other is left. It is not idle: it waits for no descriptor
 * and is not woken for work that is queued elsewhere.
 *
 * Invariant (no lost work): who rests has given up its token of a searcher (idle.c), sets rests, fences, then looks at
 * every queue, and for a worker that is carried and does not rest; a submitter pushes to an inbox, fences, then reads
 * rests of that worker. One of the two sees the other, and of several that would be the last to rest at the same time at
 * least one stays. A worker that loses its carrier later gets another if nobody waits for descriptors: see
 * needs_poller() in runtime.c.
 */
#ifndef WF_SCHED_WIDTH_H
#define WF_SCHED_WIDTH_H

#include "sched/worker.h"

/* k's worker has found no work. True: it has rested, and is to look again. */
bool wf_width_rest(struct wf_kthread *k);
void wf_width_rouse(struct wf_worker *w);

/* Somebody was pushed to w's inbox; a fence came between. */
WF_INLINE void wf_width_submitted(struct wf_worker *w)
{
	if (WF_UNLIKELY(wf_load_seq_cst(&w->rests)))
		wf_width_rouse(w);
}

/* The running thread has transferred something: what a trial counts. */
WF_INLINE void wf_width_served(void)
{
	struct wf_worker *w = wf_own_kthread()->worker;

	if (WF_LIKELY(w))
		wf_store_relaxed(&w->served, w->served + 1);
}

/* Monitor. */
void wf_width_set(bool is_narrow);
/* The same, at every tick. */
void wf_width_look(int64_t now);

#endif
