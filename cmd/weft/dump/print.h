// SPDX-License-Identifier: Apache-2.0
/*
 * A snapshot as text (print.c, events.c) or JSON (json.c).
 *
 * Used by: dump.c. Invariant: every name from the target passes through text.h.
 */
#ifndef WF_DUMP_PRINT_H
#define WF_DUMP_PRINT_H

#include "dump/view.h"

void wf_print_text(const struct wf_dump_view *v);
void wf_print_events(const struct wf_dump_view *v); /* the last part of the text */
void wf_print_json(const struct wf_dump_view *v);

#endif
