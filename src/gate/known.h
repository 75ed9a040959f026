// SPDX-License-Identifier: Apache-2.0
/*
 * The sites of the libc that this library was built beside, found when it was built: the search is half of what a program's
 * first thread costs, and most of what an exec does.
 *
 * Called by: modules.c, which searches where nothing is known. The table is made by tools/known_make.c.
 *
 * Invariant: what is listed is what a search would list. So an entry counts for a module with its build id alone, of whose
 * windows, in the same places of its text, each holds the bytes that were searched or a jump of ours; all else is searched.
 */
#ifndef WF_GATE_KNOWN_H
#define WF_GATE_KNOWN_H

#include "base/base.h"
#include "gate/sites.h"

#define WF_KNOWN_ID                                                                                \
	20 /* bytes of a build id that are compared; one that is shorter counts as none */

struct wf_known_site {
	uint32_t addr;       /* from the module's base */
	int16_t nr;          /* or -1 */
	uint8_t before, len; /* of the window: its bytes before addr, and all of them */
	uint32_t hash;       /* of the window's bytes */
};

/* The answer to one wish about one module. */
struct wf_known {
	uint8_t id[WF_KNOWN_ID];
	uint32_t glance; /* the wish's function, from the module's base; 0: none */
	struct wf_gate_counts counts;
	uint32_t first, nr; /* of the sites */
};

struct wf_known_table {
	const struct wf_known *entries;
	size_t nr;
	const struct wf_known_site *sites;
};

/* By tools/known_make.c. What it wanted is what lx_wants() and lx_wants_at_start() say. */
extern const struct wf_known_table wf_known_table WF_HIDDEN;

/*
 * As wf_sites_find() does, for a wish with what the table was made for: false if nothing is known, or there is no memory, and
 * the module is to be searched. The wish is asked for each call that is listed. A site that has been replaced before is not
 * listed again, as no search finds it.
 */
bool wf_known_find(const struct wf_known_table *t, const struct dl_phdr_info *module,
		   const struct wf_scan_wish *wish, struct wf_gate_counts *out_counts,
		   struct wf_site_list *out_list);

/* For tools/known_make.c and the tests. */
bool wf_known_id(const struct dl_phdr_info *module, uint8_t out[WF_KNOWN_ID]);
uint32_t wf_known_hash(uintptr_t base, const struct wf_known_site *site);

#endif
