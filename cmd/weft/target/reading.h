// SPDX-License-Identifier: Apache-2.0
/*
 * Parts of taking a snapshot.
 *
 * Used by: threads.c, table.c. Invariant: see threads.h.
 */
#ifndef WF_TARGET_READING_H
#define WF_TARGET_READING_H

#include "target/threads.h"

/* The way from a kernel thread's address to where it stands in the snapshot. */
struct wf_reading_place {
	uint64_t address;
	size_t index;
};

/* What reading the snapshot takes along. */
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

/* --- threads.c --- */

int64_t wf_reading_now(void);

/* --- table.c --- */

/* Of struct wf_reading_place, for qsort() and bsearch(). */
int wf_reading_by_address(const void *a, const void *b);
void wf_reading_copy_stack(struct wf_dump_thread *d, struct wf_reading *r);
/* The threads; the kernel threads are there already. False: out of memory. */
bool wf_reading_table(struct wf_threads *s, struct wf_reading *r, size_t max);

#endif
