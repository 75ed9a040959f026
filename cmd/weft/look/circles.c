// SPDX-License-Identifier: Apache-2.0
/*
 * Deadlocks of a process that goes on: see wf_look_deadlocked() in look.h.
 *
 * Invariant: one look is of no single moment, and may show a circle that never was. A thread that waits in two looks and
 * has not run between them waited all the time; where that is so of a whole circle, it was closed.
 */
#include <stdlib.h>

#include "look/look.h"
#include "target/deadlock.h"

struct found {
	struct wf_dump_thread *threads; /* by tid */
	size_t nr, room;
	const struct found
		*before; /* only circles all of whose threads are in it, and have not run since */
};

static int by_tid(const void *a, const void *b)
{
	const struct wf_dump_thread *x = a, *y = b;

	return (x->tid > y->tid) - (x->tid < y->tid);
}

static bool has_waited(const struct found *before, const struct wf_dump_thread *d)
{
	const struct wf_dump_thread *then = before->nr ? bsearch(d, before->threads, before->nr,
								 sizeof(*d), by_tid)
						       : NULL;

	return then && then->nr_switches == d->nr_switches && then->wait_what == d->wait_what;
}

static void take_circle(const struct wf_dump_thread *const *circle, size_t nr, void *arg)
{
	struct found *f = arg;

	for (size_t i = 0; f->before && i < nr; i++) {
		if (!has_waited(f->before, circle[i]))
			return;
	}
	for (size_t i = 0; i < nr && f->nr < f->room; i++)
		f->threads[f->nr++] = *circle[i];
}

static void find(struct wf_look *l, const struct wf_threads *s, struct found *out)
{
	struct wf_waits *w = wf_waits_new(&l->target, s, &l->layout, NULL);

	out->room = s->nr_threads;
	out->threads = calloc(out->room + 1, sizeof(*out->threads));
	if (w && out->threads)
		wf_deadlock_find(s, w, take_circle, out);
	if (out->nr)
		qsort(out->threads, out->nr, sizeof(*out->threads), by_tid);
	wf_waits_free(w);
}

size_t wf_look_deadlocked(struct wf_look *l, const struct wf_threads *s)
{
	struct found first = { 0 }, second = { .before = &first };
	struct wf_threads again = { 0 };

	find(l, s, &first);
	if (first.nr && wf_threads_glance(&again, &l->layout, &l->target, s->nr_threads + 1, NULL))
		find(l, &again, &second);
	wf_threads_done(&again);
	free(first.threads);
	free(second.threads);
	return second.nr;
}
