// SPDX-License-Identifier: Apache-2.0
/*
 * Stacks for fibers: guarded, of sizes that are powers of two, kept by the thread that gave them back.
 *
 * Called by: fiber.c, in the program's code. Nothing is shared: a pool is its thread's.
 *
 * Invariant: each stack is one mapping's part of `bytes`, with the guard of WF_STACKPOOL_GUARD right below it. The guard is
 * made when the stack is handed out for the first time, and stays.
 */
#ifndef WF_NATIVE_STACKPOOL_H
#define WF_NATIVE_STACKPOOL_H

#include "base/base.h"

#define WF_STACKPOOL_GUARD                                                                         \
	(16ul                                                                                      \
	 << 10) /* a frame of that size still meets it; without it the next stack would be hit */
#define WF_STACKPOOL_MIN_SHIFT                                                                     \
	14 /* 16 KiB: frames of signals with all vector registers, and some more */
#define WF_STACKPOOL_CLASSES 21 /* to 16 GiB */

struct wf_stackpool {
	struct wf_stackpool_class {
		void *spare; /* the low end of one; where the next is, is its uppermost word */
		uint32_t nr_spare;       /* at most max_spare() */
		uint32_t batch;          /* so many were mapped the last time */
		char *fresh, *fresh_end; /* mapped, never handed out, no guards yet */
	} classes[WF_STACKPOOL_CLASSES];
};

/* The class for stacks of at least that size, or -ENOMEM. */
int wf_stackpool_class(size_t bytes);
WF_INLINE size_t wf_stackpool_bytes(unsigned class)
{
	return (size_t)1 << (class + WF_STACKPOOL_MIN_SHIFT);
}

/* The low end of a stack, or NULL. Its contents are unspecified. */
char *wf_stackpool_get(struct wf_stackpool *p, unsigned class);
/* p: NULL, or where to keep it. */
void wf_stackpool_put(struct wf_stackpool *p, unsigned class, char *low);
void wf_stackpool_done(struct wf_stackpool *p);

#endif
