// SPDX-License-Identifier: Apache-2.0
/* Where a thread that has used its slice goes on; see balance.c. */
#ifndef WF_SCHED_BALANCE_H
#define WF_SCHED_BALANCE_H

#include "sched/worker.h"

/* For k's thread, which is about to leave by action: that, or WF_PREV_JOIN when it goes on elsewhere. */
enum wf_prev_action wf_balance_leave(struct wf_kthread *k, enum wf_prev_action action);

#endif
