// SPDX-License-Identifier: Apache-2.0
/* Where dumps find fibers; see fiberbook.h. */
#include "native/fiberbook.h"

#include <stdlib.h>

#define MAX_PLACES (1u << 16) /* of one page */

WF_FACE_CODE static uintptr_t *places_of(struct wf_fibers_page *p)
{
	return (uintptr_t *)(p + 1);
}

_Static_assert(sizeof(struct wf_fibers_page) == offsetof(struct wf_fiberbook, first_places) -
							offsetof(struct wf_fiberbook, first),
	       "places_of()");

WF_FACE_CODE static void add(struct wf_fiberbook *b, uintptr_t *place)
{
	wf_store_relaxed(place, (uintptr_t)b->unused + 1);
	b->unused = place;
}

/* In the order in which they will be used. */
WF_FACE_CODE static void add_page(struct wf_fiberbook *b, struct wf_fibers_page *p, uint64_t nr)
{
	p->nr = nr;
	p->next = b->shown.page;
	for (uint64_t i = nr; i-- > 0;)
		add(b, &places_of(p)[i]);
	wf_store_release(&b->shown.page, p);
}

WF_FACE_CODE struct wf_fiberbook *wf_fiberbook_new(const void *own, const void *current)
{
	struct wf_fiberbook *b = malloc(sizeof(*b));

	if (!b)
		return NULL;
	*b = (struct wf_fiberbook){ .shown = { .own = own, .current = current } };
	add_page(b, &b->first, WF_FIBERBOOK_FIRST);
	b->shown.next = wf_load_relaxed(&wf_fibers_all);
	while (!wf_cas(&wf_fibers_all, &b->shown.next, &b->shown))
		;
	return b;
}

WF_FACE_CODE void wf_fiberbook_open(struct wf_fiberbook *b, uint64_t id, int32_t tid)
{
	wf_store_relaxed(&b->shown.id, id);
	wf_store_release(&b->shown.tid, tid);
}

WF_FACE_CODE void wf_fiberbook_close(struct wf_fiberbook *b)
{
	wf_store_release(&b->shown.tid, 0);
}

WF_FACE_CODE void wf_fiberbook_forget_others(const struct wf_fiberbook *mine)
{
	for (struct wf_fibers *s = wf_load_acquire(&wf_fibers_all); s; s = s->next) {
		if (!mine || s != &mine->shown)
			wf_store_relaxed(&s->tid, 0);
	}
}

/*
 * Places that other threads have left come first. If these are less than a fourth, a page comes as well, as large as all others: so
 * a search is paid for by as many fibers as it looks at places, and the places are never many more than there were fibers.
 */
WF_FACE_CODE void wf_fiberbook_grow(struct wf_fiberbook *b)
{
	uint64_t nr = 0, nr_found = 0, more;
	struct wf_fibers_page *p;

	for (p = b->shown.page; p; p = p->next) {
		for (uint64_t i = p->nr; i-- > 0;) {
			if (wf_load_relaxed(&places_of(p)[i]))
				continue;
			add(b, &places_of(p)[i]);
			nr_found++;
		}
		nr += p->nr;
	}
	if (nr_found >= nr / 4)
		return;
	more = WF_MIN(nr, MAX_PLACES);
	p = malloc(sizeof(*p) + more * sizeof(uintptr_t));
	if (p)
		add_page(b, p, more);
}
