// SPDX-License-Identifier: Apache-2.0
/*
 * The poller, as the scheduler sees it: it includes nothing of io/, which is handed in at start (runtime.h).
 *
 * While threads wait for descriptors somebody watches it:
 *
 *	a worker that sleeps in it	at once						idle.c, nr_idle
 *	the guest, while all compute	at once, from 5 ms on				poller.c
 *	a worker between two turns	200 us, or 61 turns				worker.c, park.c
 *	the door			5 ms while all workers are busy			monitor.c
 *
 * and whoever stops doing so, or begins to wait, looks whether that leaves anybody: a worker that becomes vacant
 * (needs_poller() in runtime.c), a thread that is bound (bind.c), a direct wait (direct.c, which says until when), the last
 * carrier that can be had (rescue.c).
 */
#ifndef WF_SCHED_DRIVER_H
#define WF_SCHED_DRIVER_H

#include "base/base.h"

/* Every function may be called from any kernel thread of weft's, several at once. */
struct wf_io_driver {
	/*
	 * Make ready every thread whose event has come; wait up to timeout_ns (0: do not, < 0: for ever).
	 * True when somebody called wake() and this call consumed it.
	 */
	bool (*poll)(int64_t timeout_ns);
	/* End one poll() that waits, now or the next one. */
	void (*wake)(void);
	/* Somebody waits for an event. */
	bool (*has_waiters)(void);
	/*
	 * Let one poll() that waits then call wf_timers_due(), exactly; the earliest deadline counts. False, or
	 * NULL: it has no clock, pass a timeout.
	 */
	bool (*arm)(int64_t deadline);
	/* A kernel thread may sleep in poll() for ever while all workers compute; a kick ends it. */
	bool may_sleep_beside;
};

#endif
