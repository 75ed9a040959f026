// SPDX-License-Identifier: Apache-2.0
/* Reading of tasks; see tasks.h. */
#include "target/tasks.h"

#include <stdlib.h>

#define MAX_LISTED (1u << 16) /* entries of the list that are looked at */
#define MOST_WAITING (1u << 30)

struct place {
	int64_t tid;
	size_t index;
};

static int by_tid(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	return x->tid < y->tid ? -1 : x->tid > y->tid;
}

/* WF_GROUPS_NONE: not one of those that were read. */
static size_t find(const struct place *places, size_t nr, int64_t tid)
{
	const struct place key = { .tid = tid };
	const struct place *p = tid && nr ? bsearch(&key, places, nr, sizeof(key), by_tid) : NULL;

	return p ? p->index : WF_GROUPS_NONE;
}

/* While its thread takes the last one back, bottom is less than top for a moment. */
static unsigned count_waiting(const struct wf_target *t, uint64_t top_at, uint64_t bottom_at)
{
	uint64_t top, bottom;

	if (!wf_target_read(t, top_at, &top, sizeof(top)) ||
	    !wf_target_read(t, bottom_at, &bottom, sizeof(bottom)))
		return 0;
	return bottom - top <= MOST_WAITING ? (unsigned)(bottom - top) : 0;
}

static void note_taken(struct wf_groups *out, size_t taker, size_t forker)
{
	struct wf_dump_reach *by = &out->reaches[taker], *of = &out->reaches[forker];

	if (by->runs_of != WF_GROUPS_NONE) /* once, even in a list that is circular */
		return;
	by->runs_of = forker;
	by->next_taker = of->first_taker;
	of->first_taker = taker;
	of->nr_taken++;
}

bool wf_tasks_read(struct wf_groups *out, const struct wf_layout *l, const struct wf_target *t,
		   const struct wf_threads *s)
{
	struct place *places;
	uint64_t at = 0, mark = 0;

	if (!l->has_tasks || !wf_target_read(t, l->tasks, &at, sizeof(at)) || !at)
		return true;
	places = calloc(s->nr_threads + 1, sizeof(*places));
	if (!places)
		return false;
	for (size_t i = 0; i < s->nr_threads; i++)
		places[i] = (struct place){ s->threads[i].tid, i };
	if (s->nr_threads)
		qsort(places, s->nr_threads, sizeof(*places), by_tid);
	/* A circle is found by a mark that moves ever less often. */
	for (unsigned n = 1; at && at != mark && n <= MAX_LISTED; n++) {
		char o[WF_L_MAX_SMALL];
		size_t own, forker;

		if (!wf_layout_copy(l, t, at, WF_L_TASKS, o))
			break;
		own = find(places, s->nr_threads, (int64_t)wf_layout_get(l, o, WF_L_TASKS_TID));
		forker = find(places, s->nr_threads,
			      (int64_t)wf_layout_get(l, o, WF_L_TASKS_RUNS_OF));
		if (own != WF_GROUPS_NONE) {
			out->reaches[own].nr_waiting = count_waiting(
				t, wf_layout_get(l, o, WF_L_TASKS_TOP),
				wf_layout_get(l, o, WF_L_TASKS_BOTTOM));
			if (forker != WF_GROUPS_NONE)
				note_taken(out, own, forker);
		}
		if (!(n & (n - 1)))
			mark = at;
		at = wf_layout_get(l, o, WF_L_TASKS_NEXT);
	}
	free(places);
	return true;
}
