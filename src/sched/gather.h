// SPDX-License-Identifier: Apache-2.0
/*
 * Contenders of a lock gather on one worker.
 *
 * When threads on two processors want a lock that is held for nanoseconds, each use of it moves its cache line, and
 * they do less together than one of them alone. A kernel hides this behind slow wake-ups: the owner is long gone
 * when a waiter arrives. Ours are fast, so waiters of such a lock are queued where its owner runs instead, and
 * other workers take them from there only after a moment (see search() in idle.c), one at a time.
 *
 * Whether a lock is of this kind is learnt from how soon it is released once somebody waits. A wrong guess
 * costs at most that moment.
 */
#ifndef WF_SCHED_GATHER_H
#define WF_SCHED_GATHER_H

#include "sched/worker.h"

/* One per lock, or per bucket of locks; all under the caller's lock, where nothing else is said. Zeroed is valid. */
struct wf_gather {
	struct wf_worker
		*home;      /* where its contenders gather, as long as that worker runs a thread */
	uint64_t waited_at; /* cycles when somebody began to wait; 0: somebody was woken since */
	uint32_t score;     /* a habit: BRIEF_LOCK */
};

/* The running thread is put on the lock's wait list. */
void wf_gather_waits(struct wf_gather *g);
/* It was about to, but the lock has changed hands in that moment. Under no lock: a step that is lost is a hint less. */
void wf_gather_missed(struct wf_gather *g);
/* wf_unpark(t, WF_WAKE_EVENT) for the waiter t, which its lock's owner took from the wait list. */
bool wf_gather_unpark(struct wf_gather *g, struct wf_thread *t);
/* Under no lock. After wf_gather_missed(): the thread goes where the others are. */
WF_PARKS void wf_gather_join(struct wf_gather *g);

#endif
