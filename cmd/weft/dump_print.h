// SPDX-License-Identifier: Apache-2.0
/*
 * A snapshot as text or JSON.
 *
 * Used by: dump.c. Invariant: every name from the target passes through text.h.
 */
#ifndef WF_DUMP_PRINT_H
#define WF_DUMP_PRINT_H

#include "dump_wait.h"

struct wf_dump_view {
	const struct wf_target *target;
	const struct wf_layout *layout;
	const struct wf_threads *threads;
	struct wf_unwind *unwind;
	struct wf_waits *waits;
	bool is_grouped;  /* text: threads with equal stacks once */
	bool has_runtime; /* show the runtime's own frames too */
};

void wf_print_text(const struct wf_dump_view *v);
void wf_print_json(const struct wf_dump_view *v);

#endif
