// SPDX-License-Identifier: Apache-2.0
/* Thieves and larger rings; see deque.h. */
#include "native/deque.h"
#include "native/face.h"

WF_FACE_CODE enum wf_deque_haul wf_deque_steal(struct wf_deque *d, struct weft_task **out)
{
	int64_t top = wf_load_acquire(&d->top);
	struct weft_task *t;
	struct wf_ring *r;

	wf_fence_seq_cst(
		&d->top); /* that load before the one of bottom; pairs with wf_deque_pop() */
	if (top >= wf_load_acquire(&d->bottom))
		return WF_DEQUE_EMPTY;
	r = wf_load_acquire(&d->ring);
	t = wf_load_relaxed(&r->slots[top & r->mask]);
	if (!wf_cas(&d->top, &top, top + 1))
		return WF_DEQUE_LOST;
	*out = t;
	return WF_DEQUE_SOME;
}

WF_FACE_CODE void wf_deque_grow(struct wf_deque *d, struct wf_ring *ring)
{
	struct wf_ring *old = d->ring;

	for (int64_t i = wf_load_acquire(&d->top); i < d->bottom; i++)
		wf_store_relaxed(&ring->slots[i & ring->mask],
				 wf_load_relaxed(&old->slots[i & old->mask]));
	ring->older = old;
	wf_store_release(&d->ring, ring); /* with what is in it; pairs with wf_deque_steal() */
}
