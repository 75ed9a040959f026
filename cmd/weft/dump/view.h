// SPDX-License-Identifier: Apache-2.0
/*
 * A snapshot and how to look at it: what text and JSON have in common.
 *
 * Used by: dump.c, print.c, json.c.
 */
#ifndef WF_DUMP_VIEW_H
#define WF_DUMP_VIEW_H

#include "target/groups.h"
#include "target/wait.h"

struct wf_dump_view {
	const struct wf_target *target;
	const struct wf_layout *layout;
	const struct wf_threads *threads;
	struct wf_unwind *unwind;
	struct wf_waits *waits;
	const struct wf_groups *groups; /* NULL: they were not read, as with is_grouped */
	int64_t only;                   /* the tid of the one thread that is shown; 0: all */
	bool is_grouped;                /* text: threads with equal stacks once */
	bool is_waits;      /* so, and only those that wait, by the sum of their times */
	bool has_runtime;   /* show the runtime's own frames too */
	bool has_no_stacks; /* libdw could not be loaded */
};

/* The part of its budget that the dump used up, so that something is missing; NULL: none. */
const char *wf_view_spent(const struct wf_target *t);
/* Seconds since the process began; < 0: unknown. */
double wf_view_uptime(const struct wf_target *t);
/* Seconds from the snapshot to a deadline; < 0: it has passed. */
double wf_view_left(const struct wf_dump_view *v, int64_t deadline);
/* Its scopes are over, and it waits on: for what no scope ends, or not this one. */
bool wf_view_is_overdue(const struct wf_dump_view *v, const struct wf_dump_thread *d);
bool wf_view_is_waiting(const struct wf_dump_view *v, const struct wf_dump_thread *d);
/*
 * The runtime's frames on top of a waiting thread are the same in every one, and not the program's fault.
 * One that runs in the runtime shows them: that may be what hangs.
 */
size_t wf_view_first_frame(const struct wf_dump_view *v, const struct wf_dump_thread *d);
#define WF_VIEW_NAME_BYTES 1100 /* for the longest name of a function that is shown */
/* "read@@GLIBC_2.2.5": the version says nothing to a reader of stacks. */
const char *wf_view_function(char *out, size_t bytes, const char *name);

#endif
