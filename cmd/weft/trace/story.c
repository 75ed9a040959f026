// SPDX-License-Identifier: Apache-2.0
/*
 * From events to a story; see story.h.
 *
 * The events come from several kernel threads, and of some only a part is there: each says what it knows, and what does not
 * fit the story so far gives way to it. Two things only the later events know, so they are gone through backwards first:
 * whether a thread that leaves makes room for another directly (the next RUN of its kernel thread names it), and whether it
 * really waits (somebody wakes it) or was woken before it was gone (it runs, and nobody did).
 */
#include "trace/story.h"
#include "trace/tids.h"

#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#define NO_LANE UINT32_MAX
#define MAX_KTHREADS 32768u

/* By their names in src/trace/event_list.h; the numbers are the target's. */
enum what {
	OTHER,
	SPAWN,
	EXIT,
	PARK,
	UNPARK,
	RUN,
	YIELD,
	PREEMPT,
	HANDOFF,
	SYSCALL,
	RETURN,
	DIRECT,
	BACK,
	BIND,
	NR_WHATS
};

static const char *const what_names[NR_WHATS] = {
	[SPAWN] = "spawn",     [EXIT] = "exit",     [PARK] = "park",       [UNPARK] = "unpark",
	[RUN] = "run",         [YIELD] = "yield",   [PREEMPT] = "preempt", [HANDOFF] = "handoff",
	[SYSCALL] = "syscall", [RETURN] = "return", [DIRECT] = "direct",   [BACK] = "back",
	[BIND] = "bind",
};

/* Hints of the later events. */
#define IS_DIRECT 1u
#define IS_REALLY 2u /* PARK: it waits; YIELD: it leaves */

struct thread {
	int64_t tid; /* first: see tids.h */
	unsigned lane;
	enum wf_story_state state; /* how it left */
	unsigned char next;        /* backwards: enum what of its next event */
	bool is_ready;
	bool is_out; /* it waits for being woken, as far as was told */
	bool waits,
		calls; /* it has begun such a thing and not ended it; a wait lies inside of a call */
	uint64_t call;
};

struct lane {
	bool is_known;
	int64_t cur;
};

struct kthread {
	int64_t next_run; /* backwards: the thread that its next RUN names as the one before; -1: there is none */
	unsigned lane;     /* where it was last */
	unsigned own_lane; /* for a bound thread */
};

struct wf_story {
	const struct wf_take *take;
	unsigned char meanings[256];
	unsigned char *hints; /* of each event */
	struct wf_tids threads;
	int64_t *tids;
	struct kthread *kthreads;
	struct lane *lanes;
	unsigned nr_lanes, lanes_room;
	unsigned nr_ready, nr_running;
	int64_t now;
	void (*tell)(void *arg, const struct wf_story_item *i);
	void *arg;
};

/* NULL: nobody. */
static struct thread *thread_of(struct wf_story *s, int64_t tid)
{
	return wf_tids_row(&s->threads, tid,
			   &(struct thread){ .lane = NO_LANE, .state = WF_STORY_READY });
}

/* That the event is about, beside the one that ran; 0: none. */
static int64_t other_of(enum what what, const struct wf_ring_event *e)
{
	bool is_named = what == SPAWN || what == UNPARK || what == RUN;

	return is_named && e->a <= INT32_MAX ? (int64_t)e->a : 0;
}

static enum what what_of(const struct wf_story *s, const struct wf_ring_event *e)
{
	return (enum what)s->meanings[e->event & 255];
}

/* Does it change where t is? */
static bool is_move(enum what what)
{
	return what == EXIT || what == PARK || what == RUN || what == YIELD || what == PREEMPT ||
	       what == DIRECT || what == BACK || what == BIND;
}

static bool look_backwards(struct wf_story *s)
{
	for (size_t i = s->take->rings.nr_events; i--;) {
		const struct wf_ring_event *e = &s->take->rings.events[i];
		enum what what = what_of(s, e);
		struct kthread *k = &s->kthreads[e->kthread % MAX_KTHREADS];
		struct thread *self, *other;

		/* Only here: later there is nobody new. */
		if (!wf_tids_make_room(&s->threads, NULL))
			return false;
		self = thread_of(s, e->tid);
		other = thread_of(s, other_of(what, e));
		if (self && k->next_run == e->tid)
			s->hints[i] |= IS_DIRECT;
		if (self &&
		    ((what == PARK && self->next != RUN) || (what == YIELD && self->next == RUN)))
			s->hints[i] |= IS_REALLY;
		if (what == RUN)
			k->next_run = e->tid > 0 ? e->tid : -1;
		if (self && is_move(what) && what != RUN)
			self->next = (unsigned char)what;
		if (other && (what == RUN || what == UNPARK))
			other->next = (unsigned char)what;
	}
	return wf_tids_make_room(&s->threads, NULL);
}

static bool make_tids(struct wf_story *s)
{
	size_t nr = 0;

	s->tids = calloc(s->threads.nr + 1, sizeof(*s->tids));
	for (size_t i = 0; s->tids && i < s->threads.nr_places; i++) {
		const struct thread *t = wf_tids_at(&s->threads, i);

		if (t)
			s->tids[nr++] = t->tid;
	}
	return s->tids;
}

bool wf_story_is_endless(uint64_t call)
{
	return call == SYS_rt_sigreturn || call == SYS_exit || call == SYS_exit_group;
}

struct wf_story *wf_story_new(const struct wf_take *k)
{
	struct wf_story *s = calloc(1, sizeof(*s));
	size_t nr = k->rings.nr_events;

	if (!s)
		return NULL;
	s->take = k;
	s->threads.row_bytes = sizeof(struct thread);
	for (int w = SPAWN; w < NR_WHATS; w++)
		s->meanings[wf_layout_value(k->layout, "event", what_names[w], 0) & 255] =
			(unsigned char)w;
	s->meanings[0] = OTHER;
	s->nr_lanes = s->lanes_room = k->nr_workers;
	s->hints = calloc(nr + 1, 1);
	s->kthreads = malloc(MAX_KTHREADS * sizeof(*s->kthreads));
	s->lanes = calloc(s->nr_lanes + 1, sizeof(*s->lanes));
	if (!s->hints || !s->kthreads || !s->lanes) {
		wf_story_free(s);
		return NULL;
	}
	for (unsigned i = 0; i < MAX_KTHREADS; i++)
		s->kthreads[i] = (struct kthread){ -1, NO_LANE, NO_LANE };
	if (look_backwards(s) && make_tids(s))
		return s;
	wf_story_free(s);
	return NULL;
}

void wf_story_free(struct wf_story *s)
{
	if (!s)
		return;
	free(s->hints);
	wf_tids_done(&s->threads);
	free(s->tids);
	free(s->kthreads);
	free(s->lanes);
	free(s);
}

const int64_t *wf_story_threads(const struct wf_story *s)
{
	return s->tids;
}

/* --- telling --- */

static void say(struct wf_story *s, struct wf_story_item item)
{
	item.ns = s->now;
	item.nr_ready = s->nr_ready;
	item.nr_running = s->nr_running;
	s->tell(s->arg, &item);
}

static void set_ready(struct wf_story *s, struct thread *t, bool is_ready)
{
	if (t->is_ready == is_ready)
		return;
	t->is_ready = is_ready;
	s->nr_ready = is_ready ? s->nr_ready + 1 : s->nr_ready - 1;
}

static void end_one(struct wf_story *s, const struct thread *t)
{
	say(s, (struct wf_story_item){ .kind = WF_STORY_END, .tid = t->tid });
}

static void end_wait(struct wf_story *s, struct thread *t)
{
	if (t->waits)
		end_one(s, t);
	t->waits = false;
}

static void end_all(struct wf_story *s, struct thread *t)
{
	end_wait(s, t);
	if (t->calls)
		end_one(s, t);
	t->calls = false;
}

static void begin_wait(struct wf_story *s, struct thread *t, const struct wf_ring_event *e)
{
	end_wait(s, t);
	t->waits = true;
	say(s,
	    (struct wf_story_item){ .kind = WF_STORY_WAIT, .tid = t->tid, .a = e->a, .b = e->b });
}

/* On a lane: to the thread next, or nobody. */
static void switch_to(struct wf_story *s, unsigned lane, struct thread *next)
{
	struct lane *l = &s->lanes[lane];
	struct thread *prev = thread_of(s, l->cur);

	if (next && next->lane != NO_LANE && next->lane != lane)
		switch_to(s, next->lane, NULL);
	if (prev == next)
		return;
	if (prev) {
		set_ready(s, prev, prev->state == WF_STORY_READY);
		s->nr_running--;
	}
	if (next) {
		set_ready(s, next, false);
		s->nr_running++;
	}
	say(s, (struct wf_story_item){ .kind = WF_STORY_SWITCH,
				       .state = prev ? prev->state : WF_STORY_READY,
				       .cpu = lane,
				       .tid = next ? next->tid : 0,
				       .prev = l->cur });
	l->cur = next ? next->tid : 0;
	if (prev) {
		prev->lane = NO_LANE;
		prev->is_out = prev->state == WF_STORY_WAITS || prev->state == WF_STORY_IN_CALL;
	}
	if (next) {
		next->lane = lane;
		next->state = WF_STORY_READY; /* unless it says another thing before it leaves */
		next->is_out = false;
	}
}

static void leave(struct wf_story *s, struct thread *t, enum wf_story_state state, bool is_direct)
{
	t->state = state;
	if (!is_direct && t->lane != NO_LANE)
		switch_to(s, t->lane, NULL);
	else if (t->lane == NO_LANE && state != WF_STORY_READY && state != WF_STORY_DEAD)
		t->is_out = true;
}

static void wake(struct wf_story *s, struct thread *t, int64_t by, const struct kthread *k)
{
	unsigned lane = k->lane != NO_LANE ? k->lane : 0;

	if (t->lane != NO_LANE && t->state == WF_STORY_WAITS)
		t->state = WF_STORY_READY; /* before it was gone */
	if (t->lane != NO_LANE || !t->is_out)
		return;
	t->is_out = false;
	set_ready(s, t, true);
	say(s, (struct wf_story_item){
		       .kind = WF_STORY_WAKE, .cpu = lane, .tid = t->tid, .prev = by });
}

/* Where a thread of k's runs; NO_LANE: the event is damaged. */
static unsigned lane_of(struct wf_story *s, struct kthread *k, uint64_t worker)
{
	if (worker > s->take->nr_workers)
		return NO_LANE;
	if (worker)
		return k->lane = (unsigned)worker - 1;
	if (k->own_lane == NO_LANE) {
		if (s->nr_lanes >= s->lanes_room) {
			unsigned room = 2 * s->lanes_room + 8;
			void *p = realloc(s->lanes, room * sizeof(*s->lanes));

			if (!p)
				return NO_LANE;
			s->lanes = p;
			s->lanes_room = room;
		}
		s->lanes[s->nr_lanes] = (struct lane){ 0 };
		k->own_lane = s->nr_lanes++;
	}
	return k->lane = k->own_lane;
}

/* At the first look at a lane: the one that leaves it was there before the story began. */
static void begin_lane(struct wf_story *s, unsigned lane, int64_t cur)
{
	struct lane *l = &s->lanes[lane];
	struct thread *t;

	if (l->is_known)
		return;
	l->is_known = true;
	t = thread_of(s, cur);
	if (!t || t->lane != NO_LANE)
		return;
	l->cur = cur;
	t->lane = lane;
	s->nr_running++;
}

static void tell_run(struct wf_story *s, const struct wf_ring_event *e, struct kthread *k,
		     struct thread *next)
{
	unsigned lane = lane_of(s, k, e->b);
	struct thread *prev;

	if (lane == NO_LANE || !next)
		return;
	begin_lane(s, lane, e->tid);
	end_wait(s, next);
	wake(s, next, 0, k); /* somebody did, unseen */
	prev = thread_of(s, s->lanes[lane].cur);
	if (prev == next)
		switch_to(s, lane, NULL);
	switch_to(s, lane, next);
}

static void tell_back(struct wf_story *s, const struct wf_ring_event *e, struct kthread *k,
		      struct thread *self)
{
	unsigned lane;

	if (!e->a) { /* it waits for a worker: until now it was in a call, or bound */
		leave(s, self, WF_STORY_READY, false);
		wake(s, self, 0, k);
		return;
	}
	lane = lane_of(s, k, e->a);
	if (lane == NO_LANE || self->lane == lane)
		return;
	begin_lane(s, lane, 0);
	end_wait(s, self);
	wake(s, self, 0, k);
	switch_to(s, lane, self);
}

static void tell_handoff(struct wf_story *s, const struct wf_ring_event *e, struct kthread *k)
{
	struct thread *t;

	if (e->a >= s->take->nr_workers)
		return;
	/* The monitor takes it from another one, which says nothing. */
	if (strcmp(wf_layout_name(s->take->layout, "handoff", e->b), "by the monitor") != 0) {
		begin_lane(s, (unsigned)e->a, e->tid);
		k->lane = (unsigned)e->a;
	}
	t = thread_of(s, s->lanes[e->a].cur);
	if (t)
		leave(s, t, WF_STORY_IN_CALL, false);
}

static void tell_call(struct wf_story *s, const struct wf_ring_event *e, struct thread *t)
{
	end_all(s, t); /* what a signal's handler has interrupted */
	if (wf_story_is_endless(e->a))
		return;
	t->calls = true;
	t->call = e->a;
	say(s,
	    (struct wf_story_item){ .kind = WF_STORY_CALL, .tid = t->tid, .a = e->a, .b = e->b });
}

static void tell_return(struct wf_story *s, const struct wf_ring_event *e, struct thread *t)
{
	if (!t->calls || t->call != e->a)
		return;
	end_wait(s, t);
	t->calls = false;
	say(s, (struct wf_story_item){
		       .kind = WF_STORY_END, .tid = t->tid, .a = e->b, .has_value = true });
}

static void tell_of_self(struct wf_story *s, const struct wf_ring_event *e, enum what what,
			 unsigned hints, struct kthread *k, struct thread *self)
{
	switch (what) {
	case EXIT:
		end_all(s, self);
		leave(s, self, WF_STORY_DEAD, hints & IS_DIRECT);
		break;
	case PARK:
		begin_wait(s, self, e);
		leave(s, self, hints & IS_REALLY ? WF_STORY_WAITS : WF_STORY_READY,
		      hints & IS_DIRECT);
		break;
	case DIRECT:
		begin_wait(s, self, e);
		leave(s, self, WF_STORY_WAITS, false);
		break;
	case YIELD:
		leave(s, self, WF_STORY_READY, !(hints & IS_REALLY) || hints & IS_DIRECT);
		break;
	case PREEMPT:
		say(s, (struct wf_story_item){
			       .kind = WF_STORY_PREEMPT, .tid = self->tid, .a = e->a });
		leave(s, self, WF_STORY_READY, hints & IS_DIRECT);
		break;
	case BIND:
		leave(s, self, WF_STORY_READY, false);
		if (lane_of(s, k, 0) != NO_LANE)
			switch_to(s, k->lane, self);
		break;
	case BACK:
		tell_back(s, e, k, self);
		break;
	case SYSCALL:
		tell_call(s, e, self);
		break;
	case RETURN:
		tell_return(s, e, self);
		break;
	default:
		break;
	}
}

static void tell_event(struct wf_story *s, size_t i)
{
	const struct wf_ring_event *e = &s->take->rings.events[i];
	enum what what = what_of(s, e);
	struct kthread *k = &s->kthreads[e->kthread % MAX_KTHREADS];
	struct thread *self = thread_of(s, e->tid), *other = thread_of(s, other_of(what, e));

	if (what == RUN) {
		tell_run(s, e, k, other);
	} else if (what == HANDOFF) {
		tell_handoff(s, e, k);
	} else if (what == SPAWN || what == UNPARK) {
		if (!other)
			return;
		end_wait(s, other);
		if (what == SPAWN && other->lane == NO_LANE)
			other->is_out = true;
		wake(s, other, e->tid, k);
	} else if (self) {
		tell_of_self(s, e, what, s->hints[i], k, self);
	}
}

void wf_story_tell(struct wf_story *s, void (*tell)(void *arg, const struct wf_story_item *i),
		   void *arg)
{
	const struct wf_rings *r = &s->take->rings;

	s->tell = tell;
	s->arg = arg;
	for (size_t i = 0; i < r->nr_events; i++) {
		int64_t ns = wf_take_ns(s->take, r->events[i].cycles);

		s->now = ns > s->now ? ns : s->now;
		tell_event(s, i);
	}
	for (size_t i = 0; i < s->threads.nr_places; i++) {
		struct thread *t = wf_tids_at(&s->threads, i);

		if (t)
			end_all(s, t);
	}
}
