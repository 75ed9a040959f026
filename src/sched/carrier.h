// SPDX-License-Identifier: Apache-2.0
/*
 * Carriers: kernel threads, each with a loop on a stack of its own. One with a worker looks there for work and goes to the thread
 * that it finds; threads switch to one another from then on, and come back here when there is none to run. One without a worker
 * waits until somebody needs it, and ends when nobody does. One that is bound goes to its thread whenever that can run.
 *
 * Called by: runtime.c and staff.c, as the first function of each kernel thread.
 */
#ifndef WF_SCHED_CARRIER_H
#define WF_SCHED_CARRIER_H

/* Returns when the kernel thread is to end. */
void wf_carrier_loop(void *kthread);
/* From when somebody needs it. Until then it says nothing of itself: a kick is answered when the loop begins. */
void wf_carrier_loop_later(void *kthread);

#endif
