// SPDX-License-Identifier: Apache-2.0
/*
 * Counters at the end of a program: WEFT_STATS=1.
 *
 * Called by: linux/ on the way out of the process (through a hook), after which nothing runs any more.
 */
#ifndef WF_OBS_STATS_H
#define WF_OBS_STATS_H

#include "base/base.h"

/* The gate's work at start-up. */
struct wf_stats_gate {
	uint32_t modules; /* objects whose text was looked at */
	uint32_t patched; /* system call instructions that jump to us */
	uint32_t left;    /* wanted, but left alone */
};

/* One block on standard error, in one write. gate may be NULL. From any kernel thread, at any time. */
void wf_stats_print(const struct wf_stats_gate *gate);

#endif
