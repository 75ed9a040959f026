// SPDX-License-Identifier: Apache-2.0
/*
 * The runtime's counters, in words.
 *
 * Used by: openmetrics.c, top_show.c. Invariant: the order is that of wf_threads.count.
 */
#ifndef WF_LOOK_COUNTS_H
#define WF_LOOK_COUNTS_H

#include "target/threads.h"

struct wf_count {
	const char *name, *help;
};

extern const struct wf_count wf_counts[WF_NR_COUNTS];

#endif
