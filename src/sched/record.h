// SPDX-License-Identifier: Apache-2.0
/*
 * The rings of kernel threads: who has some, and since when.
 *
 * Called by: runtime.c, for each kernel thread that comes; monitor.c, when somebody outside has asked for events.
 *
 * Invariant: wf_trace.keeps is set before rings are given out, and wf_trace.on after all that are there have theirs. Who
 * comes meanwhile looks at keeps after it can be seen in the list, and whoever gives it rings looks at the list after keeps is
 * set: one of the two sees the other, and a second gift is taken back. Whoever has no number yet is not told from one that
 * has ended, so that one gets rings, too; where it is made anew at that very moment, they may be lost, and it gets others.
 * tests/model/record.c plays it.
 */
#ifndef WF_SCHED_RECORD_H
#define WF_SCHED_RECORD_H

#include "sched/kthread.h"

/* Rings for k, if events are kept and it has none. Without memory it goes on without. */
void wf_record_give(struct wf_kthread *k);
void wf_record_unmap(struct wf_trace_ring *rings);

/* The demand in wf_trace.asked, if there is one, is done. By the monitor. */
void wf_record_look(void);

#endif
