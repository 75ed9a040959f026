// SPDX-License-Identifier: Apache-2.0
/*
 * `weft dump --stacks`: how much of their stacks the threads have used, by the function that each began with.
 *
 * Used by: dump.c. Reads a live process only: a core does not say which pages were touched.
 */
#ifndef WF_DUMP_STACKS_H
#define WF_DUMP_STACKS_H

#include "dump/view.h"

/* The threads of v have their frames. False: no memory, or the process may not be read. */
bool wf_stacks_print(const struct wf_dump_view *v, bool is_json);

#endif
