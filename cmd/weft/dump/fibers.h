// SPDX-License-Identifier: Apache-2.0
/*
 * A thread's fibers, as text.
 *
 * Used by: print.c, tree.c. Invariant: that of print.h. The view has groups.
 */
#ifndef WF_DUMP_FIBERS_H
#define WF_DUMP_FIBERS_H

#include "dump/view.h"

/* A line for each fiber of the thread. */
void wf_fibers_print(const struct wf_dump_view *v, const struct wf_dump_thread *d);
/* "; in fiber "parse" of 3 fibers": the one that it is in, if it is in one. */
void wf_fibers_print_number(const struct wf_dump_view *v, const struct wf_dump_thread *d);

#endif
