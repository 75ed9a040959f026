// SPDX-License-Identifier: Apache-2.0
/*
 * The table of threads of a snapshot.
 *
 * Used by: threads.c, and fibers.c for their stacks. Invariant: see threads.h.
 */
#ifndef WF_TARGET_TABLE_H
#define WF_TARGET_TABLE_H

#include "target/reading.h"

/* Of struct wf_reading_place, for qsort() and bsearch(). */
int wf_table_by_address(const void *a, const void *b);
/* The registers that a switch has left at sp, into d. False: it cannot be read. */
bool wf_table_saved_by_switch(struct wf_dump_thread *d, const struct wf_reading *r, uint64_t sp);
void wf_table_copy_stack(struct wf_dump_thread *d, struct wf_reading *r);
/* The threads; the kernel threads are there already. False: out of memory. */
bool wf_table_read(struct wf_threads *s, struct wf_reading *r, size_t max);

#endif
