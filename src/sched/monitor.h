// SPDX-License-Identifier: Apache-2.0
/* The monitor; see monitor.c. */
#ifndef WF_SCHED_MONITOR_H
#define WF_SCHED_MONITOR_H

#include "base/base.h"

struct wf_thread;
struct wf_worker;

/* Monitor: one look at everything. Returns when to look next (WF_NEVER: disarmed). */
int64_t wf_monitor_tick(int64_t now);
/*
 * Every worker is busy and a thread was woken for w: let it run soon if w's thread has run for a while. t: the thread, which
 * may be gone by now; NULL for one that uses whole slices, and waits for its turn.
 */
void wf_monitor_preempt_for_wake(struct wf_worker *w, const struct wf_thread *t);
/* Make sure that the door ticks; soon: within a millisecond. */
void wf_monitor_arm(void);
void wf_monitor_hurry(void);

#endif
