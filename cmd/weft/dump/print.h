// SPDX-License-Identifier: Apache-2.0
/*
 * A snapshot as text (print.c, events.c) or JSON (json.c).
 *
 * Used by: dump.c, tree.c. Invariant: every name from the target passes through text.h.
 */
#ifndef WF_DUMP_PRINT_H
#define WF_DUMP_PRINT_H

#include "dump/view.h"

void wf_print_text(const struct wf_dump_view *v);
void wf_print_events(const struct wf_dump_view *v); /* the last part of the text */
/* Parts that print.c and tree.c have in common. */
void wf_print_head(const struct wf_dump_view *v);
void wf_print_tail(const struct wf_dump_view *v);
/* "thread 7 "serve": parked, waits for fd 3", without a line end. */
void wf_print_thread(const struct wf_dump_view *v, const struct wf_dump_thread *d,
		     const char *mark);
/* "; 2 tasks forked, 1 stolen by crew-1": those that nobody calls yet, and those that others are at. The view has groups. */
void wf_print_tasks(const struct wf_dump_view *v, const struct wf_dump_thread *d);
const char *wf_print_seconds(char out[32], double s);

void wf_print_json(const struct wf_dump_view *v);

#endif
