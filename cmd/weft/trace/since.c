// SPDX-License-Identifier: Apache-2.0
/* Threads that are ready or in calls, and since when; see since.h. */
#include "trace/since.h"

#include "trace/story.h"
#include "trace/tids.h"

#include <stdlib.h>
#include <string.h>

struct thread {
	int64_t tid;              /* first: see tids.h */
	int64_t ready_at, run_at; /* the last of either */
	int64_t call_at,
		back_at; /* of a call that holds a kernel thread, or lasts without a wait */
	uint64_t call;
	bool has_ended;
};

struct wf_since {
	const struct wf_take *take;
	struct wf_tids threads;
	int64_t *lanes; /* the thread of each worker, 0: nobody */
	int64_t last_run, stalled;
	struct wf_since_longest longest[WF_SINCE_NR];
};

struct wf_since *wf_since_new(const struct wf_take *k)
{
	struct wf_since *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->take = k;
	s->threads.row_bytes = sizeof(struct thread);
	s->lanes = calloc(k->nr_workers + 1, sizeof(*s->lanes));
	if (s->lanes)
		return s;
	free(s);
	return NULL;
}

void wf_since_free(struct wf_since *s)
{
	if (!s)
		return;
	wf_tids_done(&s->threads);
	free(s->lanes);
	free(s);
}

static bool has_not_ended(const void *row)
{
	return !((const struct thread *)row)->has_ended;
}

static struct thread *thread_of(struct wf_since *s, int64_t tid)
{
	return wf_tids_row(&s->threads, tid, &(struct thread){ 0 });
}

static void note(struct wf_since *s, enum wf_since_what what, int64_t ns, const struct thread *t,
		 bool is_over)
{
	struct wf_since_longest *l = &s->longest[what];

	if (ns > l->ns)
		*l = (struct wf_since_longest){
			.ns = ns,
			.tid = t->tid,
			.is_over = is_over,
			.call = what == WF_SINCE_CALL ? t->call : UINT64_MAX,
		};
}

static void take_ready(struct thread *t, int64_t at)
{
	if (t && at > t->ready_at && at > t->run_at)
		t->ready_at = at;
}

static void take_run(struct wf_since *s, struct thread *t, int64_t at)
{
	if (t->ready_at > t->run_at && at > t->ready_at)
		note(s, WF_SINCE_READY, at - t->ready_at, t, true);
	if (at > t->run_at)
		t->run_at = at;
	if (at > s->last_run)
		s->last_run = at;
}

static void begin_call(struct thread *t, int64_t at, uint64_t call)
{
	bool was_unnamed = t && t->call == UINT64_MAX && t->call_at > t->back_at;

	/* That it holds a kernel thread may be heard before that it began. */
	if (t && (at > t->call_at || was_unnamed) && at > t->back_at) {
		t->call_at = at;
		t->call = call;
	}
}

/* A wait is no call. */
static void end_call(struct wf_since *s, struct thread *t, int64_t at, bool is_over)
{
	if (is_over && t->call_at > t->back_at && at > t->call_at)
		note(s, WF_SINCE_CALL, at - t->call_at, t, true);
	if (at > t->back_at)
		t->back_at = at;
}

static void take_event(struct wf_since *s, const struct wf_ring_event *e)
{
	const char *what = wf_layout_name(s->take->layout, "event", e->event);
	int64_t at = wf_take_ns(s->take, e->cycles);
	struct thread *self = thread_of(s, e->tid);

	if (strcmp(what, "run") == 0) {
		struct thread *t = thread_of(s, (int64_t)(e->a & INT32_MAX));

		if (e->b && e->b <= s->take->nr_workers)
			s->lanes[e->b - 1] = t ? t->tid : 0;
		if (t)
			take_run(s, t, at);
		return;
	}
	if (strcmp(what, "unpark") == 0 || strcmp(what, "spawn") == 0) {
		take_ready(thread_of(s, (int64_t)(e->a & INT32_MAX)), at);
	} else if (strcmp(what, "handoff") == 0 && e->a < s->take->nr_workers) {
		struct thread *t = self;

		if (strcmp(wf_layout_name(s->take->layout, "handoff", e->b), "by the monitor") == 0)
			t = thread_of(s, s->lanes[e->a]);
		if (t && t->call_at <= t->back_at)
			begin_call(t, at, UINT64_MAX);
		return; /* it says nothing of who wrote it */
	}
	if (!self)
		return;
	if (self->ready_at > self->run_at && at > self->ready_at)
		self->run_at = at; /* it runs, having been woken before it had gone */
	if (strcmp(what, "yield") == 0 || strcmp(what, "preempt") == 0) {
		take_ready(self, at);
	} else if (strcmp(what, "syscall") == 0) {
		if (!wf_story_is_endless(e->a))
			begin_call(self, at, e->a);
	} else if (strcmp(what, "return") == 0) {
		end_call(s, self, at, true);
	} else if (strcmp(what, "back") == 0) {
		end_call(s, self, at, true);
		if (!e->a)
			take_ready(self, at);
	} else if (strcmp(what, "park") == 0 || strcmp(what, "direct") == 0) {
		end_call(s, self, at, false);
	} else if (strcmp(what, "exit") == 0) {
		end_call(s, self, at, false);
		self->has_ended = true;
	}
}

/* Those that still are: a thread that began to wait says so, one that yields in vain goes on and says the next thing. */
static void look_at_all(struct wf_since *s, int64_t now)
{
	int64_t oldest = now;

	for (size_t i = 0; i < s->threads.nr_places; i++) {
		const struct thread *t = wf_tids_at(&s->threads, i);

		if (!t || t->has_ended)
			continue;
		if (t->ready_at > t->run_at) {
			note(s, WF_SINCE_READY, now - t->ready_at, t, false);
			if (t->ready_at < oldest)
				oldest = t->ready_at;
		}
		if (t->call_at > t->back_at)
			note(s, WF_SINCE_CALL, now - t->call_at, t, false);
	}
	if (oldest < s->last_run)
		oldest = s->last_run;
	s->stalled = now - oldest;
}

bool wf_since_look(struct wf_since *s, int64_t now)
{
	const struct wf_rings *r = &s->take->rings;

	memset(s->longest, 0, sizeof(s->longest));
	for (size_t i = 0; i < r->nr_events; i++) {
		if (!wf_tids_make_room(&s->threads, has_not_ended))
			return false;
		take_event(s, &r->events[i]);
	}
	if (!s->last_run)
		s->last_run = now;
	look_at_all(s, now);
	return true;
}

struct wf_since_longest wf_since_longest(const struct wf_since *s, enum wf_since_what what)
{
	return s->longest[what];
}

int64_t wf_since_stalled(const struct wf_since *s)
{
	return s->stalled;
}
