// SPDX-License-Identifier: Apache-2.0
/*
 * Fixed-size objects that stay type-stable: memory is never returned, a freed object is reused LIFO.
 *
 * Safe in a signal handler and in the scheduler: one spin lock, raw mmap for growth.
 */
#ifndef WF_MEM_SLAB_H
#define WF_MEM_SLAB_H

#include "base/spin.h"

struct wf_slab {
	struct wf_spin lock;
	uint32_t object_bytes;   /* (c) rounded up to 64 */
	void *free;              /* (q) next free object is its first word */
	char *fresh, *fresh_end; /* (q) not handed out yet */
	uint64_t nr_made;        /* (q) */
};

void wf_slab_init(struct wf_slab *s, uint32_t object_bytes);
/* NULL when the system has no memory. The contents are unspecified. */
void *wf_slab_get(struct wf_slab *s);
void wf_slab_put(struct wf_slab *s, void *object);

/* Several at once, each linked to the next by its first word; NULL ends it. How many there are: none, or up to most. */
uint32_t wf_slab_get_chain(struct wf_slab *s, uint32_t most, void **out);
void wf_slab_put_chain(struct wf_slab *s, void *first, void *last);

#endif
