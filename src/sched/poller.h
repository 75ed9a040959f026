// SPDX-License-Identifier: Apache-2.0
/*
 * The guest that waits for descriptors while every worker computes.
 *
 * Called by: monitor.c.
 *
 * An idle worker sleeps in the poller, and one whose threads take short turns looks there between them. Beside threads
 * that use whole slices only the monitor looked, every 5 ms. So when it finds that state it sends a kernel thread of its
 * own there, which makes ready who is waited for; their worker is kicked at once. It is a guest: it leaves when a worker
 * sleeps there, and when threads no longer compute, so that no event of a server wakes one kernel thread more.
 *
 * Nobody relies on it: what makes sure that an event is seen is what there is without it, in idle.c and monitor.c.
 */
#ifndef WF_SCHED_POLLER_H
#define WF_SCHED_POLLER_H

#include "base/base.h"

/*
 * NONE   -> STAYS   monitor      before it makes the kernel thread; back if none can be made
 * AWAY   -> STAYS   monitor      and wakes the futex
 * STAYS  -> AWAY    the poller   a worker sleeps there, or its events are for nobody
 * STAYS  -> LEAVES  monitor      and kicks it, at every tick until it is AWAY: a kick may come before its sleep
 * LEAVES -> STAYS   monitor      threads compute again
 * LEAVES -> AWAY    the poller
 */
enum wf_poller_state {
	WF_POLLER_NONE,
	WF_POLLER_AWAY, /* asleep on the word, or about to be */
	WF_POLLER_STAYS,
	WF_POLLER_LEAVES,
};

/* Monitor, at every tick, after it has looked at the workers. */
void wf_poller_look(int64_t now);

#endif
