// SPDX-License-Identifier: Apache-2.0
/* Looking for work, and waking whoever could do it; see idle.c. */
#ifndef WF_SCHED_IDLE_H
#define WF_SCHED_IDLE_H

#include "base/base.h"

struct wf_kthread;
struct wf_thread;
struct wf_worker;

/* Wake whoever sleeps, because work was queued. */
void wf_idle_wake(void);
/* A cheap look: would that wake anybody? */
bool wf_idle_is_anybody(void);
/* Work that w's carrier must not sleep on, here or elsewhere. */
bool wf_idle_is_work_around(const struct wf_worker *w);
/* The same, without what another worker will come to soon. */
bool wf_idle_is_work_left(const struct wf_worker *w);
/* k's worker takes, of what is queued at workers that nobody carries, as much as one steals. */
void wf_idle_take_over(struct wf_kthread *k);
/* The next thread for k's worker: its own, a stolen one, or one that wakes it from its sleep in the poller. */
struct wf_thread *wf_idle_find_work(struct wf_kthread *k);

#endif
