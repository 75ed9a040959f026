// SPDX-License-Identifier: Apache-2.0
/*
 * A table by tid: the notes on each thread while its events are gone through.
 *
 * Used by: story.c, since.c. Invariant: a row begins with its thread's tid, 0 where the place is free, and there is always
 * a free one; rows move when room is made.
 */
#ifndef WF_TRACE_TIDS_H
#define WF_TRACE_TIDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wf_tids {
	size_t row_bytes; /* set by who owns the table */
	char *rows;
	size_t nr_places, nr;
};

/* For two more threads. Rows that do not stay are forgotten then; NULL: all stay. False: out of memory, and all is as it was. */
bool wf_tids_make_room(struct wf_tids *t, bool (*stays)(const void *row));
/* The row of a thread; of a new one it is a copy of fresh. NULL: tid is no thread's. */
void *wf_tids_row(struct wf_tids *t, int64_t tid, const void *fresh);
/* Of a place below nr_places; NULL: it is free. */
void *wf_tids_at(const struct wf_tids *t, size_t place);
void wf_tids_done(struct wf_tids *t);

#endif
