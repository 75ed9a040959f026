// SPDX-License-Identifier: Apache-2.0
/*
 * Where the functions of a loaded module begin and end, from its unwind tables.
 *
 * Called by: sites.c, which must decode code from a place that is surely the start of an
 * instruction.
 *
 * Invariant: tables of any but the usual form count as none.
 */
#ifndef WF_GATE_FDE_H
#define WF_GATE_FDE_H

#include <link.h>
#include <stddef.h>
#include <stdint.h>

struct wf_fde_entry {
	int32_t start; /* of the function; like fde relative to the header of the table */
	int32_t fde;
};

struct wf_fde_table {
	const uint8_t *hdr; /* .eh_frame_hdr */
	const struct wf_fde_entry *entries;
	size_t nr;
};

void wf_fde_find(const struct dl_phdr_info *module, struct wf_fde_table *out);

/* Index of the last function that starts at or before addr, or t->nr. */
size_t wf_fde_at(const struct wf_fde_table *t, uintptr_t addr);

/* As the table has it: UINTPTR_MAX behind the last function. */
const uint8_t *wf_fde_start(const struct wf_fde_table *t, size_t i);

/* Where the code of function i starts, and where it ends: at once if its FDE cannot be read. */
void wf_fde_bounds(const struct wf_fde_table *t, size_t i, const uint8_t **out_start,
		   const uint8_t **out_end);

#endif
