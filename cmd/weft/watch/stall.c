// SPDX-License-Identifier: Apache-2.0
/*
 * The look from outside: does the program get on?
 *
 * Called by: supervise.c, foreign.c. A process of its own looks, with the reader of `weft dump`: what goes wrong there,
 * and what a hostile target does, ends with it.
 *
 * Invariant: stalled is who was seen so in all looks of the time that was given: threads ready and not one switch, or
 * the same threads in a circle, none of which ran meanwhile; or a thread that has a mutex for which others wait, and both its
 * call and their waiting have lasted for that time.
 */
#include "watch/watch.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <fcntl.h>

#include "target/deadlock.h"

#define LOOK_EVERY WF_WATCH_S
#define LOOK_LIMIT (5 * WF_WATCH_S)
#define LOOK_SHARE 100 /* of the time, one part is for looking */
#define MAX_THREADS 100000

struct looking {
	pid_t pid;
	int out;
};

static uint64_t mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * 0x9e3779b97f4a7c15ull;
	return hash ^ hash >> 29;
}

static void take_circle(const struct wf_dump_thread *const *circle, size_t nr, void *arg)
{
	struct wf_watch_look *look = arg;
	uint64_t sum = 0;

	/* A sum, since a circle has no first thread. */
	for (size_t i = 0; i < nr; i++)
		sum += mix(mix(1, (uint64_t)circle[i]->tid), circle[i]->nr_switches);
	look->circle += sum | 1;
	look->nr_circle += (unsigned)nr;
}

/* Of one who waits: is whoever has that mutex in a call? */
static void look_at_owner(const struct wf_threads *s, const struct wf_layout *l,
			  struct wf_waits *waits, const struct wf_dump_thread *d,
			  struct wf_watch_look *look)
{
	const struct wf_dump_thread *owner = wf_waits_owner(waits, d);
	int64_t since, ns;

	/* To be joined while one is in a call is nothing special. */
	if (!owner || wf_waits_is_join(owner, d) || owner->wait_kind != l->waits_call ||
	    !owner->wait_since || !d->wait_since)
		return;
	since = owner->wait_since > d->wait_since ? owner->wait_since : d->wait_since;
	ns = s->now > since ? s->now - since : 0;
	if (owner->tid == look->held_tid)
		look->nr_held++;
	if (ns <= look->held_ns)
		return;
	look->held_ns = ns;
	look->held_call = (int64_t)owner->wait_what;
	if (owner->tid != look->held_tid)
		look->nr_held = 1;
	look->held_tid = owner->tid;
}

static bool judge(const struct wf_threads *s, const struct wf_layout *l, const struct wf_target *t,
		  struct wf_watch_look *look)
{
	uint64_t ready = wf_layout_value(l, "state", "ready", UINT64_MAX);
	struct wf_waits *waits = wf_waits_new(t, s, l, NULL);

	if (!waits)
		return false;
	for (size_t i = 0; i < s->nr_threads; i++) {
		look->nr_ready += s->threads[i].state == ready;
		look->switches += s->threads[i].nr_switches;
		look_at_owner(s, l, waits, &s->threads[i], look);
	}
	look->switches = mix(look->switches, s->nr_alive);
	wf_deadlock_find(s, waits, take_circle, look);
	wf_waits_free(waits);
	return true;
}

static void look_once(void *arg)
{
	const struct looking *looking = arg;
	struct wf_watch_look look = { 0 };
	struct wf_threads s = { 0 };
	struct wf_layout l = { 0 };
	struct wf_budget budget;
	struct wf_target t;
	bool is_good;

	wf_budget_begin(&budget);
	is_good = wf_target_open_process(&t, looking->pid, &budget) && wf_layout_read(&l, &t) &&
		  wf_layout_fetch(&l, &t, l.runtime, WF_L_RT_STARTED) && wf_target_stop(&t);
	if (is_good)
		is_good = wf_threads_read(&s, &l, &t, MAX_THREADS, 0, 0);
	wf_target_resume(&t);
	if (is_good && s.is_started && judge(&s, &l, &t, &look))
		(void)!write(looking->out, &look, sizeof(look));
	_exit(0);
}

/* Stopped by somebody, on purpose. */
static bool is_stopped(pid_t pid)
{
	char text[WF_WATCH_STAT_BYTES];
	const char *end = wf_watch_ended_stat(pid, text);

	return end && (end[2] == 'T' || end[2] == 't');
}

static bool look_at(struct wf_watch *w, pid_t pid, struct wf_watch_look *out)
{
	struct looking looking = { .pid = pid };
	int ends[2];
	bool is_good;

	if (is_stopped(pid) || pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
		return false;
	looking.out = ends[1];
	(void)wf_watch_call(w, look_once, &looking, LOOK_LIMIT);
	is_good = read(ends[0], out, sizeof(*out)) == sizeof(*out);
	close(ends[0]);
	close(ends[1]);
	return is_good;
}

void wf_watch_stall_reset(struct wf_watch *w)
{
	w->stall = (struct wf_watch_stall){ .idle_since = WF_WATCH_NEVER,
					    .circle_since = WF_WATCH_NEVER };
}

int64_t wf_watch_stall_due(const struct wf_watch *w)
{
	return w->stall_ns ? w->stall.next_look : WF_WATCH_NEVER;
}

/* Since when what is so now has been so. */
static void follow(int64_t *since, bool is_so, bool is_same, int64_t now)
{
	if (!is_so)
		*since = WF_WATCH_NEVER;
	else if (!is_same || *since == WF_WATCH_NEVER)
		*since = now;
}

static void say_held(const struct wf_watch_look *look, char *why, size_t bytes)
{
	const char *call = wf_waits_call_name((long)look->held_call);
	char span[32], number[24];

	snprintf(number, sizeof(number), "call %lld", (long long)look->held_call);
	snprintf(why, bytes,
		 "stall: thread %lld is in %s and has a mutex that %u threads wait for, for %s",
		 (long long)look->held_tid, call ? call : number, look->nr_held,
		 wf_watch_span(span, look->held_ns));
}

bool wf_watch_stall_look(struct wf_watch *w, pid_t pid, char *why, size_t bytes)
{
	int64_t before = wf_watch_now(), every = LOOK_EVERY, now;
	struct wf_watch_stall *s = &w->stall;
	struct wf_watch_look look;
	char span[32];
	bool is_idle, is_circle, is_held;

	if (!w->stall_ns || before < s->next_look)
		return false;
	if (!look_at(w, pid, &look)) {
		wf_watch_stall_reset(w);
		look = (struct wf_watch_look){ 0 };
	}
	now = wf_watch_now();
	if (w->stall_ns / 2 < every)
		every = w->stall_ns / 2;
	if (LOOK_SHARE * (now - before) > every)
		every = LOOK_SHARE * (now - before);
	s->next_look = now + every;
	follow(&s->idle_since, look.nr_ready, look.switches == s->last.switches, now);
	follow(&s->circle_since, look.nr_circle, look.circle == s->last.circle, now);
	s->last = look;
	is_idle = s->idle_since != WF_WATCH_NEVER && now - s->idle_since >= w->stall_ns;
	is_circle = s->circle_since != WF_WATCH_NEVER && now - s->circle_since >= w->stall_ns;
	is_held = look.held_ns >= w->stall_ns;
	if (!is_idle && !is_circle && !is_held) {
		s->is_told = false;
		return false;
	}
	if (s->is_told)
		return false;
	s->is_told = true;
	(void)wf_watch_span(span, now - (is_circle ? s->circle_since : s->idle_since));
	if (is_circle)
		snprintf(why, bytes, "deadlock: %u threads wait for one another, for %s",
			 look.nr_circle, span);
	else if (is_held)
		say_held(&look, why, bytes);
	else
		snprintf(why, bytes, "stall: %u threads are ready and none gets on, for %s",
			 look.nr_ready, span);
	return true;
}
