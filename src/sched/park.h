// SPDX-License-Identifier: Apache-2.0
/*
 * Parking: the only way a thread stops running until somebody wakes it, and the only way it is woken.
 *
 *	wf_park_begin(flags);
 *	put yourself where a waker finds you (wait list, timer);
 *	reason = wf_park(deadline);           or wf_park_abort()
 *	take yourself off every list again;
 *
 * Invariant: exactly one wf_unpark() between begin and return wins; all others return false. A waker must
 * have found the thread on a list whose lock it holds (or hold the thread's signal lock), so no waker of an
 * earlier park can reach a later one, except with WF_WAKE_INTERRUPTED: that one may come at any time, and
 * the waiter looks for itself whether it has reason to stop. native/order.h does without the lock, and says why.
 */
#ifndef WF_SCHED_PARK_H
#define WF_SCHED_PARK_H

#include "sched/thread.h"

/* flags: 0, WF_INTR, or WF_INTR | WF_REACHED. kind and what are shown in dumps. */
void wf_park_begin(uint32_t flags, enum wf_wait kind, uint64_t what);
/*
 * The same, when a spin lock is taken between here and wf_park(): that is the fence which a signal poster's
 * look at the state pairs with, and a second one would cost every futex wait as much as half a switch.
 */
void wf_park_begin_before_lock(uint32_t flags, enum wf_wait kind, uint64_t what);
/* It does not park, but waits in a system call, which is much the same for what is shown and learnt of it. */
void wf_park_describe(enum wf_wait kind, uint64_t what);
/* deadline: CLOCK_MONOTONIC ns, or WF_NEVER. */
WF_PARKS enum wf_reason wf_park(int64_t deadline);
/* Instead of wf_park(): the event turned out to have happened. A reason that came first is returned. */
enum wf_reason wf_park_abort(void);

/* Ends what the thread of sc waits for if its scopes reach that: it is to look at them. No call but this one is needed. */
void wf_park_tell(struct wf_scopes *sc);
/* By that thread, around a real call that its scopes reach: from now on wf_park_tell() breaks it, see wf_call_break(). */
void wf_park_begin_call(struct wf_scopes *sc);
void wf_park_end_call(struct wf_scopes *sc);

/* True when this call made t runnable. */
bool wf_unpark(struct wf_thread *t, enum wf_reason reason);

/* The same, to run on w (ours, or one that runs somebody now) because it waits for a lock; see gather.h. */
bool wf_unpark_on(struct wf_thread *t, enum wf_reason reason, struct wf_worker *w);

/*
 * A call that can wait found what it wanted. One that always does, since its peer answers at once, never parks: after a
 * while it is to let others run, at the gate's exit. Nor does it see what comes for others: it looks now and then.
 */
void wf_found_ready(void);
/* Let others run first; returns at once when nobody waits. */
WF_PARKS void wf_yield(void);
/* The same for one that was told to: with slice left it comes right after those that were woken. */
WF_PARKS void wf_give_way(void);

#endif
