// SPDX-License-Identifier: Apache-2.0
/* The memory of handles; see handle.h. */
#include "native/handle.h"
#include "mem/slab.h"
#include "sched/runtime.h"

/* A worker takes and gives back so many at once. */
#define PIECE 64u

_Static_assert(WF_USES == 64, "what slabs align to");

static struct wf_slab handles = { .object_bytes = WF_ALIGN_UP(sizeof(struct weft_thread), 64) };

/* By worker. */
static struct {
	struct weft_thread *first;
	uint32_t nr;
} WF_ALIGNED(WF_CACHE_LINE) kept[WF_MAX_WORKERS];
static uint32_t
	nr_kept; /* (a) workers that may have kept some: a fork child's runtime knows of none */

static struct weft_thread *take(const struct wf_worker *w)
{
	struct weft_thread *t = kept[w->index].first;

	if (WF_UNLIKELY(!t)) {
		wf_store_relaxed(&nr_kept, wf_rt.nr_workers);
		kept[w->index].nr = wf_slab_get_chain(&handles, PIECE, (void **)&t);
		if (!t)
			return NULL;
	}
	kept[w->index].first = t->next;
	kept[w->index].nr--;
	return t;
}

static void keep(const struct wf_worker *w, struct weft_thread *t)
{
	struct weft_thread *last = t;

	t->next = kept[w->index].first;
	kept[w->index].first = t;
	if (WF_LIKELY(++kept[w->index].nr < 2 * PIECE))
		return;
	for (uint32_t i = 1; i < PIECE; i++)
		last = last->next;
	kept[w->index].first = last->next;
	kept[w->index].nr -= PIECE;
	wf_slab_put_chain(&handles, t, last);
}

static const struct wf_worker *worker_of(const struct wf_thread *self)
{
	return self ? wf_own_kthread()->worker : NULL;
}

struct weft_thread *wf_handle_get(const struct wf_thread *self)
{
	const struct wf_worker *w;
	struct weft_thread *t;

	wf_self_enter(self);
	w = worker_of(self);
	t = w ? take(w) : wf_slab_get(&handles);
	wf_self_leave(self);
	return t;
}

void wf_handle_put(const struct wf_thread *self, struct weft_thread *t)
{
	const struct wf_worker *w = worker_of(self);

	wf_store_release(&t->state, WF_USE_FREE);
	if (w)
		keep(w, t);
	else
		wf_slab_put(&handles, t);
}

void wf_handle_put_by(const struct wf_thread *self, struct weft_thread *t)
{
	wf_self_enter(self);
	wf_handle_put(self, t);
	wf_self_leave(self);
}

void wf_handle_forget(void)
{
	handles = (struct wf_slab){ .object_bytes = handles.object_bytes };
	for (uint32_t w = 0; w < nr_kept; w++) {
		kept[w].first = NULL;
		kept[w].nr = 0;
	}
}
