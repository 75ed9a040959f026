// SPDX-License-Identifier: Apache-2.0
/*
 * The choice of the sleeper that wakes up for the next timer.
 *
 * Called by: park.c (a deadline was set), idle.c and the poller (somebody went to sleep or came back).
 *
 * While a worker sleeps in the poller, that wakes one of them exactly in time (driver.h: arm). While all are
 * busy it is the door, which looks every few milliseconds anyhow, and is told when that is too late.
 *
 * Invariant: whoever makes a deadline the first one stores it in the wheel, then looks for sleepers and at the
 * time until which the door sleeps; who goes to sleep, or leaves the poller as the last, writes that down
 * first and then reads the wheel. One of the two sees the other.
 */
#ifndef WF_SCHED_TIMERS_H
#define WF_SCHED_TIMERS_H

#include "base/base.h"

/* A timer earlier than all others was armed by the running thread, which is about to wait for it. */
void wf_timers_first(int64_t deadline);
/* Fire what is due. */
void wf_timers_look(void);
/* By the poller: the time that it was armed for has come, and it is armed no more. */
void wf_timers_due(void);
/* The calling worker is about to sleep in the poller. How long at most: ns, or -1 for ever. */
int64_t wf_timers_sleep(void);
/* The calling worker is awake again: it has found work. */
void wf_timers_awake(void);
/* By the door: when to look at the timers once more, whatever else there is; WF_NEVER: it need not. */
int64_t wf_timers_look_again(int64_t now);
/* True when the door, which sleeps until `until`, would be late for a timer or for the poller. */
bool wf_timers_door_is_late(int64_t now, int64_t until);

#endif
