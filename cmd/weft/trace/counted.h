// SPDX-License-Identifier: Apache-2.0
/*
 * The figures of a trace beside its events: threads that are ready, threads that run, and the process's memory.
 *
 * Used by: perfetto.c, json.c. Invariant: what is written of one figure has times that never go back, and its last value is
 * the last that was told.
 */
#ifndef WF_TRACE_COUNTED_H
#define WF_TRACE_COUNTED_H

#include "trace/story.h"

enum wf_counted_what {
	WF_COUNTED_READY,
	WF_COUNTED_RUNNING,
	WF_COUNTED_MEMORY,
	WF_COUNTED_NR
};

extern const char *const wf_counted_names[WF_COUNTED_NR];

struct wf_counted {
	const struct wf_take *take;
	/* Called for each value that is worth it. */
	void (*write)(void *arg, enum wf_counted_what what, int64_t ns, uint64_t value);
	void *arg;
	uint64_t value[WF_COUNTED_NR]; /* as it was written last */
	int64_t at[WF_COUNTED_NR];
	size_t memory_at;
	struct wf_story_item last;
};

/* Before and after i is told, and when all was. */
void wf_counted_before(struct wf_counted *c, const struct wf_story_item *i);
void wf_counted_after(struct wf_counted *c, const struct wf_story_item *i);
void wf_counted_end(struct wf_counted *c);

#endif
