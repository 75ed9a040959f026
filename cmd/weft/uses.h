// SPDX-License-Identifier: Apache-2.0
/*
 * Which rows of the table of calls a program and its libraries use. Used by: report.c.
 */
#ifndef WF_USES_H
#define WF_USES_H

#include <stdbool.h>
#include <stddef.h>

#include "calls.h"

struct wf_uses_item {
	const struct wf_calls_row *row;
	const char *by; /* a library, or NULL: the program itself; not owned */
	bool is_inline; /* by a system call instruction, not through libc */
};

struct wf_uses {
	struct wf_uses_item
		*items; /* each row once, for the first who uses it; see wf_uses_sort() */
	size_t nr;
	bool is_incomplete; /* no memory for more */
};

/* name is an import; nothing happens if the table has no row for it. */
void wf_uses_add(struct wf_uses *u, const char *name, const char *by);
void wf_uses_add_number(struct wf_uses *u, int nr);
/* By name, the program's own first. */
void wf_uses_sort(struct wf_uses *u);
bool wf_uses_has(const struct wf_uses *u, enum wf_calls_fate fate);
void wf_uses_free(struct wf_uses *u);

#endif
