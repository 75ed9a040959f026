// SPDX-License-Identifier: Apache-2.0
/*
 * Parts of taking a snapshot.
 *
 * Used by: threads.c, table.c. Invariant: see threads.h.
 */
#ifndef WF_TARGET_READING_H
#define WF_TARGET_READING_H

#include <time.h>

#include "target/threads.h"

/* The way from a kernel thread's address to where it stands in the snapshot. */
struct wf_reading_place {
	uint64_t address;
	size_t index;
};

/* The state of reading a snapshot. */
struct wf_reading {
	const struct wf_layout *layout;
	const struct wf_target *target;
	struct wf_reading_place *kthreads;  /* by address */
	char *object;                       /* room for one of any structure */
	bool is_glance;                     /* the target goes on meanwhile */
	const struct wf_threads_part *part; /* of a glance; NULL: all */
	int64_t only;                       /* the tid whose stack is copied; 0: all */
	size_t copied;                      /* bytes of stacks */
};

static inline int64_t wf_reading_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

#endif
