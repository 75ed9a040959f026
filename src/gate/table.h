// SPDX-License-Identifier: Apache-2.0
/*
 * The table of patches: from an address in patched code to the trampoline, and back.
 *
 * Called by: patch.c, which fills it; signal delivery, preemption and dumps, which ask it in signal
 * handlers: no lock, no libc, no allocation.
 *
 * Invariant: a batch is never freed. One whose module is gone is used again for another, and a
 * reader that was looking at it then finds nothing.
 */
#ifndef WF_GATE_TABLE_H
#define WF_GATE_TABLE_H

#include "gate/sites.h"

/* The patches of one module at one time. (legend: sched/thread.h) */
struct wf_batch {
	struct wf_batch *next; /* (p) */
	uint32_t generation;   /* (a) grows when the module goes */
	bool is_gone;     /* (a) module unmapped: windows no longer count, trampolines still do */
	uintptr_t lo, hi; /* windows lie in [lo, hi) */
	uintptr_t pool, pool_hi; /* (p) room for trampolines, in the order of the sites */
	size_t nr;
	size_t bytes;           /* (p) of the mapping of this structure with its sites */
	struct wf_site sites[]; /* sorted by window and by trampoline */
};

/* A batch with room for this many sites, which no reader sees yet. NULL: out of memory. */
struct wf_batch *wf_table_new(size_t nr, uintptr_t pool, uintptr_t pool_hi);
void wf_table_drop(struct wf_batch *b);

/* One of a module that is gone, with room for nr sites and pool_bytes of trampolines; or NULL. */
struct wf_batch *wf_table_reuse(size_t nr, size_t pool_bytes, uintptr_t lo, uintptr_t hi);

/* Copy the sites, which have their trampolines now. */
void wf_table_fill(struct wf_batch *b, const struct wf_site_list *list);

/* From now on readers find it. */
void wf_table_publish(struct wf_batch *b);

/* All of [lo, hi) and of [pool_lo, pool_hi) can jump to one another. */
bool wf_gate_reaches(uintptr_t lo, uintptr_t hi, uintptr_t pool_lo, uintptr_t pool_hi);

/* The module that was mapped in [start, end) is gone: what is mapped there next is not patched. */
void wf_gate_forget(uintptr_t start, uintptr_t end);

/*
 * Where execution that should go on at rip really continues: the trampoline if rip lies in an
 * overwritten window.
 */
uintptr_t wf_gate_to_tramp(uintptr_t rip);

/*
 * The original address that a rip in a trampoline stands for; 0 between entry and resume; others
 * unchanged.
 */
uintptr_t wf_gate_from_tramp(uintptr_t rip);

bool wf_gate_in_pool(uintptr_t rip);

#endif
