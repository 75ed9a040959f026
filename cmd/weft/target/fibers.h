// SPDX-License-Identifier: Apache-2.0
/*
 * The fibers of a snapshot's threads.
 *
 * Used by: groups.c. Invariant: that of groups.h.
 */
#ifndef WF_TARGET_FIBERS_H
#define WF_TARGET_FIBERS_H

#include "target/groups.h"

/* Into the reaches of out, which are there. only: of the thread with that number; 0: of all. False: out of memory. */
bool wf_fibers_read(struct wf_groups *out, const struct wf_layout *l, const struct wf_target *t,
		    const struct wf_threads *s, int64_t only);

#endif
