// SPDX-License-Identifier: Apache-2.0
/* The run queue; see runq.h. */
#include "sched/runq.h"
#include "base/die.h"

#define STEAL_MAX 32 /* thieves come back; a bigger haul needs a bigger stack */

static void lock(struct wf_runq *q)
{
	if (!q->is_private)
		wf_spin_lock(&q->lock);
}

static void unlock(struct wf_runq *q)
{
	if (!q->is_private)
		wf_spin_unlock(&q->lock);
}

static void append_to(struct wf_level *l, struct wf_thread *t)
{
	t->next = NULL;
	if (l->tail)
		l->tail->next = t;
	else
		l->head = t;
	l->tail = t;
}

static struct wf_thread *take_from(struct wf_level *l)
{
	struct wf_thread *t = l->head;

	l->head = t->next;
	if (!l->head)
		l->tail = NULL;
	return t;
}

static void append(struct wf_array *a, struct wf_thread *t)
{
	unsigned level = wf_load_relaxed(&t->level); /* once: others may change it at any time */

	append_to(&a->level[level], t);
	a->bitmap |= 1ul << level;
}

/* The list whose head is next in turn, or NULL. */
static struct wf_level *first_of(struct wf_array *a)
{
	if (a->woken.head)
		return &a->woken;
	return a->bitmap ? &a->level[__builtin_ctzl(a->bitmap)] : NULL;
}

static struct wf_thread *take_first(struct wf_array *a, struct wf_level *l)
{
	struct wf_thread *t = take_from(l);

	if (!l->head && l != &a->woken)
		a->bitmap &= ~(1ul << (l - a->level));
	return t;
}

void wf_runq_push(struct wf_runq *q, struct wf_thread *t, enum wf_place place)
{
	lock(q);
	switch (place) {
	case WF_PLACE_HANDOFF:
		if (q->handoff)
			append_to(&q->array[q->active].woken, q->handoff);
		q->handoff = t;
		break;
	case WF_PLACE_WOKEN:
		append_to(&q->array[q->active].woken, t);
		break;
	case WF_PLACE_TAIL:
		append(&q->array[q->active], t);
		break;
	case WF_PLACE_EXPIRED:
		append(&q->array[!q->active], t);
		break;
	}
	wf_store_relaxed(&q->nr, wf_runq_nr(q) + 1);
	unlock(q);
}

/* leaves_gathered: NULL instead of a thread that gathers at a lock. */
static struct wf_thread *take_queued(struct wf_runq *q, bool leaves_gathered)
{
	struct wf_level *l = first_of(&q->array[q->active]);

	if (!l) {
		q->active = !q->active;
		l = first_of(&q->array[q->active]);
	}
	if (!l || (leaves_gathered && l->head->gathers))
		return NULL;
	return take_first(&q->array[q->active], l);
}

struct wf_thread *wf_runq_pop(struct wf_runq *q, bool *out_new_slice)
{
	struct wf_thread *t = NULL;

	*out_new_slice = true;
	lock(q);
	if (q->handoff && q->handoff_streak >= WF_HANDOFFS_IN_A_ROW) {
		append(&q->array[q->active], q->handoff);
		q->handoff = NULL;
	}
	if (q->handoff) {
		t = q->handoff;
		q->handoff = NULL;
		q->handoff_streak++;
		*out_new_slice = false;
	} else {
		t = take_queued(q, false);
		q->handoff_streak = 0;
	}
	if (t)
		wf_store_relaxed(&q->nr, wf_runq_nr(q) - 1);
	unlock(q);
	return t;
}

void wf_runq_end_handoff(struct wf_runq *q)
{
	lock(q);
	if (q->handoff)
		append(&q->array[q->active], q->handoff);
	q->handoff = NULL;
	unlock(q);
}

uint32_t wf_runq_steal(struct wf_runq *to, struct wf_runq *from, enum wf_greed greed)
{
	struct wf_thread *taken[STEAL_MAX], *handoff;
	uint32_t want, n = 0;

	/* The kernel may have descheduled the holder: a thief has other victims. */
	if (!wf_runq_nr(from) || !wf_spin_trylock(&from->lock))
		return 0;
	want = wf_runq_nr(from) - (from->handoff ? 1 : 0);
	want = WF_MIN((want + 1) / 2, (uint32_t)STEAL_MAX);
	while (n < want && (taken[n] = take_queued(from, true)))
		n++;
	if (!n && greed == WF_GREED_ALL)
		n = (taken[0] = take_queued(from, false)) != NULL;
	handoff = from->handoff;
	if (!n && greed != WF_GREED_NONE && handoff &&
	    (greed == WF_GREED_ALL || !handoff->gathers)) {
		taken[n++] = handoff;
		from->handoff = NULL;
	}
	wf_store_relaxed(&from->nr, wf_runq_nr(from) - n);
	wf_spin_unlock(&from->lock);
	for (uint32_t i = 0; i < n; i++)
		wf_runq_push(to, taken[i], WF_PLACE_TAIL);
	return n;
}
