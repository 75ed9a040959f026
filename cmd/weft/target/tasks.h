// SPDX-License-Identifier: Apache-2.0
/*
 * The tasks that a snapshot's threads have forked, and those who have taken some over.
 *
 * Used by: groups.c. Invariant: that of groups.h.
 */
#ifndef WF_TARGET_TASKS_H
#define WF_TARGET_TASKS_H

#include "target/groups.h"

/* Into the reaches of out, which are there. False: out of memory. */
bool wf_tasks_read(struct wf_groups *out, const struct wf_layout *l, const struct wf_target *t,
		   const struct wf_threads *s);

#endif
