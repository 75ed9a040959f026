// SPDX-License-Identifier: Apache-2.0
/* Counting states; see shares.h. */
#include "look/shares.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "target/wait.h"

#define SAMPLE_S 2 /* of the process, at most */
#define KEPT 0.5f  /* of older looks, at each whole one */

static void count(struct wf_shares *s, struct wf_share *row, const struct wf_layout *l,
		  const struct wf_dump_thread *d)
{
	bool was_ready = row->ready_since && row->nr_switches == d->nr_switches;

	row->read_at = d->read_at;
	row->nr_switches = d->nr_switches;
	if (wf_waits_is_waiting(l, d)) {
		row->wait++;
	} else if (d->state == l->running) {
		row->run++;
	} else {
		row->ready++;
		if (!was_ready)
			row->ready_since = d->read_at;
		if (!s->oldest_ready_tid || d->read_at - row->ready_since > s->oldest_ready_ns) {
			s->oldest_ready_ns = d->read_at - row->ready_since;
			s->oldest_ready_tid = d->tid;
		}
		return;
	}
	row->ready_since = 0;
}

/* Both are in the order of their addresses, so *at only grows. */
static struct wf_share *find(const struct wf_shares *s, const struct wf_dump_thread *d, size_t *at)
{
	while (*at < s->nr && s->rows[*at].address < d->address)
		(*at)++;
	return *at < s->nr && s->rows[*at].address == d->address && s->rows[*at].tid == d->tid
		       ? &s->rows[*at]
		       : NULL;
}

void wf_shares_look(struct wf_shares *s, const struct wf_layout *l, const struct wf_threads *t,
		    double cost_s)
{
	struct wf_shares old = *s;
	size_t at = 0;

	*s = (struct wf_shares){ .every_s = cost_s / WF_SHARES_COST };
	if (s->every_s < WF_SHARES_EVERY_S)
		s->every_s = WF_SHARES_EVERY_S;
	s->rows = calloc(t->nr_threads + 1, sizeof(*s->rows));
	s->nr = s->rows ? t->nr_threads : 0;
	for (size_t i = 0; i < s->nr; i++) {
		const struct wf_dump_thread *d = &t->threads[i];
		struct wf_share *row = &s->rows[i], *before = find(&old, d, &at);

		if (before) {
			*row = *before;
			row->run *= KEPT;
			row->ready *= KEPT;
			row->wait *= KEPT;
		}
		row->address = d->address;
		row->tid = d->tid;
		/* Of very many threads only a part was looked at. */
		if (row->read_at != d->read_at)
			count(s, row, l, d);
	}
	free(old.rows);
}

void wf_shares_sample(struct wf_shares *s, struct wf_look *l)
{
	struct wf_threads t;
	size_t at = 0;

	wf_budget_begin(&l->budget);
	wf_budget_set_time(&l->budget, SAMPLE_S);
	s->oldest_ready_ns = s->oldest_ready_tid = 0;
	if (wf_threads_glance(&t, &l->layout, &l->target, s->nr, NULL)) {
		for (size_t i = 0; i < t.nr_threads; i++) {
			struct wf_share *row = find(s, &t.threads[i], &at);

			if (row)
				count(s, row, &l->layout, &t.threads[i]);
		}
	}
	wf_threads_done(&t);
}

static void sleep_for(double seconds)
{
	struct timespec ts = { .tv_sec = (time_t)seconds };

	ts.tv_nsec = (long)((seconds - (double)ts.tv_sec) * 1e9);
	while (nanosleep(&ts, &ts) < 0 && errno == EINTR)
		;
}

void wf_shares_pause(struct wf_shares *s, struct wf_look *l, double seconds)
{
	double end = wf_look_now_s() + seconds, left;

	while ((left = end - wf_look_now_s()) > 0) {
		sleep_for(left < s->every_s || !s->nr ? left : s->every_s);
		if (end - wf_look_now_s() > s->every_s && s->nr)
			wf_shares_sample(s, l);
	}
}

void wf_shares_done(struct wf_shares *s)
{
	free(s->rows);
	*s = (struct wf_shares){ 0 };
}

double wf_shares_percent(const struct wf_share *s, float part)
{
	float all = s->run + s->ready + s->wait;

	return all > 0 ? 100 * (double)part / (double)all : 0;
}
