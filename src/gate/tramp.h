// SPDX-License-Identifier: Apache-2.0
/*
 * Trampolines, and where there is room for them in reach of a module.
 *
 * Called by: patch.c.
 *
 * Invariant: no page of a pool is writable and executable at once.
 */
#ifndef WF_GATE_TRAMP_H
#define WF_GATE_TRAMP_H

#include "gate/sites.h"

struct wf_pool {
	uintptr_t start;
	uintptr_t end; /* page-aligned, like start */
	bool is_own;   /* part of our own text */
};

/* Whole pages for the trampolines of these sites. */
size_t wf_pool_bytes(const struct wf_site_list *list);

/* Room in reach of [lo, hi): our own pool, or a new mapping. False: there is none. */
bool wf_pool_find(uintptr_t lo, uintptr_t hi, size_t bytes, struct wf_pool *out);

/* The pool that was found is in use from now on; or it was not needed after all. */
void wf_pool_keep(const struct wf_pool *pool);
void wf_pool_drop(const struct wf_pool *pool);

/*
 * Write the trampolines of the sites and note their addresses there. Returns 0; -errno: the system
 * forbids it (PR_SET_MDWE, seccomp, SELinux); -ERANGE: an operand is out of reach.
 */
long wf_pool_fill(const struct wf_pool *pool, struct wf_site_list *list);

#endif
