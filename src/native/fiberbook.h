// SPDX-License-Identifier: Apache-2.0
/*
 * A thread's fibers, so that a dump finds them: a place for each, in pages that are never given back.
 *
 * Called by: fiber.c, in the program's code. Invariant: a place that nobody uses is in its book's list, which is its thread's
 * alone, or 0: then somebody else has left it, and its thread finds it when the list is empty. That is all that two threads
 * ever do with one place, so there is no lock, and whoever enters and leaves on one thread pays two loads and two stores.
 *
 * Considered and refused: a list through the fibers themselves. Two of their neighbours' pages are touched then when one is made or
 * freed, and a free on another thread needs a lock.
 */
#ifndef WF_NATIVE_FIBERBOOK_H
#define WF_NATIVE_FIBERBOOK_H

#include "native/face.h"
#include "sched/fibers.h"

#define WF_FIBERBOOK_FIRST 32u /* places that come with the book */

struct wf_fiberbook {
	struct wf_fibers shown;
	uintptr_t
		*unused; /* (o) the first place of the list; each says where the next is, plus 1 */
	struct wf_fibers_page first;
	uintptr_t first_places[WF_FIBERBOOK_FIRST];
};

/* own: of the thread's own stack. current: where it is said which fiber runs. Both stay where they are. NULL: no memory. It is never given back. */
struct wf_fiberbook *wf_fiberbook_new(const void *own, const void *current);
/* From now on it is this thread's, until wf_fiberbook_close(). id: of its fibers. */
void wf_fiberbook_open(struct wf_fiberbook *b, uint64_t id, int32_t tid);
void wf_fiberbook_close(struct wf_fiberbook *b);
/* In the child of a fork(): no other thread is there any more. mine: NULL, or this thread's. */
void wf_fiberbook_forget_others(const struct wf_fiberbook *mine);

/* Places, if there is memory for some. */
void wf_fiberbook_grow(struct wf_fiberbook *b);

/* Once f can be looked at. Returns its place; NULL: there was no memory for one, and no dump shows it. */
WF_INLINE uintptr_t *wf_fiberbook_enter(struct wf_fiberbook *b, const void *f)
{
	uintptr_t *place;

	if (WF_UNLIKELY(!b->unused))
		wf_fiberbook_grow(b);
	place = b->unused;
	if (WF_UNLIKELY(!place))
		return NULL;
	b->unused = (uintptr_t *)(*place - 1);
	wf_store_release(place, (uintptr_t)f); /* pairs with the reads of a dump */
	return place;
}

/* Before f's memory goes. b: this thread's if f was entered in it, else NULL. place: NULL, or what entering has returned. */
WF_INLINE void wf_fiberbook_leave(struct wf_fiberbook *b, uintptr_t *place)
{
	if (WF_UNLIKELY(!place))
		return;
	wf_store_relaxed(place, b ? (uintptr_t)b->unused + 1 : 0);
	if (b)
		b->unused = place;
}

#endif
