// SPDX-License-Identifier: Apache-2.0
/*
 * The record of a thread's tasks, for dumps; native/taskdeque.c keeps it.
 *
 * Nothing in the process reads it. Invariant: one is never given back, so that the list can be walked at any moment; while
 * tid is not 0, it is that thread's.
 */
#ifndef WF_SCHED_TASKS_H
#define WF_SCHED_TASKS_H

#include "base/atomic.h"
#include "base/base.h"

/* Those in [*top, *bottom) were forked and wait for somebody who calls them. */
struct wf_tasks {
	struct wf_tasks *next;       /* (p) */
	const int64_t *top, *bottom; /* (p) */
	int32_t tid;                 /* (a) of its thread; 0: nobody's */
	int32_t runs_of; /* (o) the thread whose task that one has taken over; 0: none */
};

extern struct wf_tasks *wf_tasks_all; /* (a) by next */

#endif
