// SPDX-License-Identifier: Apache-2.0
/*
 * Stacks into frames, addresses into names: libdwfl, and frame pointers where its tables end.
 *
 * Used by: dump/dump.c, dump/print.c, wait.c. Invariant: works on the snapshot; nothing of the target runs
 * or stops for it.
 */
#ifndef WF_TARGET_UNWIND_H
#define WF_TARGET_UNWIND_H

#include "target/threads.h"

struct wf_unwind;

/*
 * NULL: out of memory. Without libdw there are no frames, and names of nothing: *out_why says why, as long as
 * the result lives, else it is NULL.
 */
struct wf_unwind *wf_unwind_new(const struct wf_target *t, const struct wf_layout *l,
				const char **out_why);
void wf_unwind_free(struct wf_unwind *u);

/* Fills d->frames, at least with the first when its pc is known. */
void wf_unwind_thread(struct wf_unwind *u, struct wf_dump_thread *d);

struct wf_unwind_name {
	const char *function; /* NULL: unknown; of C++ as it was written */
	const char *symbol;   /* the function's symbol, where that is another text; else NULL */
	uint64_t offset;      /* into the function, or into the object */
	const char *object;   /* file of the code, without directories; NULL: none there */
	const char *file;     /* source, or NULL */
	int line;
	bool is_runtime; /* code of weft itself */
};

/* The strings live as long as u. */
void wf_unwind_name(struct wf_unwind *u, const struct wf_dump_frame *f, struct wf_unwind_name *out);
/* A variable: its name and the offset into it; false: no symbol there. */
bool wf_unwind_data(struct wf_unwind *u, uint64_t address, const char **out_name,
		    uint64_t *out_offset);

#endif
