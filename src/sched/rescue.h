// SPDX-License-Identifier: Apache-2.0
/*
 * Too few kernel threads (RLIMIT_NPROC, pids.max): a call that blocks gave its worker away, and there is nobody to carry it.
 *
 * Called by: monitor.c, with each look; linux/call.c.
 *
 * While a worker is carried, whatever is ready runs there sooner or later. When none is, because every kernel thread sits in
 * a call and no further one can be made, the door still ticks: it polls, keeps the timers, and ends one of the calls that
 * can be made again as if nothing had been (wf_thread.repeats_call). Its kernel thread takes the vacant worker, lets all
 * others run first, wherever they are queued, and only then makes the call again. So threads in such calls take turns on the
 * kernel threads that there are, some each millisecond. With as many kernel threads as there are threads, natively
 * none would wait for another; here one of them is the door, and a thread fewer at a time is in its call.
 *
 * While some worker is carried and others are not, for want of kernel threads, what is queued at those is taken over: by the
 * carried one when it lets others run, and now and then when it picks a thread. The monitor ends slices there as if it
 * were queued there.
 *
 * Invariant: work is queued, or somebody waits for a descriptor, and no worker has a carrier: then the monitor stays armed.
 * A kernel thread that leaves a worker vacant arms it once that is to be seen; it disarms, then looks for that. Each of its looks tries to
 * make a carrier for what is queued, and else ends a call, each time of the next kernel thread. A call that ends by itself, of whatever kind,
 * finds the worker vacant and goes on with what is queued. Where no call can be ended, signals are at least told to who
 * is in one, as one may end the process.
 */
#ifndef WF_SCHED_RESCUE_H
#define WF_SCHED_RESCUE_H

#include "sched/idle.h"
#include "sched/runtime.h"

/* By the monitor, after it has tried to wake a worker. When to look again; WF_NEVER: nobody is stranded. */
int64_t wf_rescue_look(int64_t now, bool is_queued);
/* Nobody sleeps in the poller, and nobody can: the monitor must not disarm. */
bool wf_rescue_is_poller_missing(void);
/* By a thread whose call has ended for no reason of its own: was it for others? Then they run first. */
WF_PARKS void wf_rescue_let_others_run(void);
/* Something is queued at a worker that is not carried because no kernel thread could be made. */
bool wf_rescue_is_work_left(void);

/* By k, which carries a worker: take over what is queued so. */
WF_INLINE void wf_rescue_take_over(struct wf_kthread *k)
{
	if (WF_UNLIKELY(wf_load_relaxed(&wf_rt.refusal)))
		wf_idle_take_over(k);
}

/* No kernel thread could be made: -errno. The monitor tells that, once. */
void wf_rescue_note(long error);

#endif
