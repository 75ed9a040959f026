// SPDX-License-Identifier: Apache-2.0
/*
 * Direct waits: a thread waits for events in a system call of its own, and its worker waits with it.
 *
 * To park costs a server whose only loop is busy three system calls for each wait instead of one: a look, the
 * worker's sleep in the poller, another look. While another worker sleeps in the poller, and so sees to everybody
 * else, a worker with nothing else to run may as well wait where its thread wants to; and also while nobody waits for a
 * descriptor, until shortly before the first timer. A bound thread always may.
 */
#ifndef WF_SCHED_DIRECT_H
#define WF_SCHED_DIRECT_H

#include "sched/runtime.h"
#include "sched/worker.h"

/* The values of kthread.direct. */
enum wf_direct {
	WF_DIRECT_NONE,
	WF_DIRECT_WAITS,
	WF_DIRECT_ENDS,  /* interrupted */
	WF_DIRECT_SEARCH /* interrupted, with the token of nr_searching: there is work */
};

/* A cheap guess whether wf_direct_begin() would succeed; to be asked once for each wait. */
bool wf_direct_may_begin(void);
/*
 * True: the caller makes its call with the attention word watched, so that a kick ends it, and then tells
 * wf_direct_end(). A call that was ended for others must not be made again before the thread has parked or run.
 * *until: in, the caller's deadline or WF_NEVER; out, perhaps earlier, to leave time for the timers. kind and what are shown in dumps.
 */
bool wf_direct_begin(enum wf_wait kind, uint64_t what, int64_t *until);
void wf_direct_end(void);

/* End one direct wait, and pass on the token that the caller holds. False: there is none. */
bool wf_direct_wake(void);
/* The slow part of wf_direct_see_to_poller(), where somebody waits directly. */
void wf_direct_replace(void);
/*
 * The caller will not sleep in the poller soon, though it may have been the last one there, or its thread parks: if somebody
 * must, end a direct wait.
 */
WF_INLINE void wf_direct_see_to_poller(void)
{
	if (WF_UNLIKELY(wf_load_seq_cst(&wf_rt.nr_direct)))
		wf_direct_replace();
}

#endif
