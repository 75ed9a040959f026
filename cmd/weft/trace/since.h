// SPDX-License-Identifier: Apache-2.0
/*
 * Since when threads are ready, and since when in calls, by the events as they come.
 *
 * Used by: when.c. Invariant: the events of one look may be older than those of the look before, so that each is judged by
 * its own time: what came later has the last word.
 */
#ifndef WF_TRACE_SINCE_H
#define WF_TRACE_SINCE_H

#include "trace/take.h"

enum wf_since_what {
	WF_SINCE_READY,
	WF_SINCE_CALL,
	WF_SINCE_NR
};

/* The longest that was seen in the last look: over, or still going on. */
struct wf_since_longest {
	int64_t ns, tid; /* tid 0: none */
	bool is_over;
	uint64_t call; /* of a call: its number, or UINT64_MAX */
};

struct wf_since;

/* NULL: out of memory. */
struct wf_since *wf_since_new(const struct wf_take *k);
void wf_since_free(struct wf_since *s);

/* The events that are in the rings' copy, and the time of now. False: out of memory. */
bool wf_since_look(struct wf_since *s, int64_t now);

struct wf_since_longest wf_since_longest(const struct wf_since *s, enum wf_since_what what);
/* Somebody is ready for so long, and all the while nobody came to a worker. */
int64_t wf_since_stalled(const struct wf_since *s);

#endif
