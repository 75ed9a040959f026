// SPDX-License-Identifier: Apache-2.0
/* Parking; see park.h for the protocol and thread.h for the states. */
#include "sched/park.h"
#include "base/die.h"
#include "sched/balance.h"
#include "sched/clock.h"
#include "sched/crowd.h"
#include "sched/direct.h"
#include "sched/insys.h"
#include "sched/rate.h"
#include "sched/rescue.h"
#include "sched/runtime.h"
#include "sched/scope.h"
#include "sched/shuffle.h"
#include "sched/timers.h"
#include "sched/worker.h"

static void fire_deadline(struct wf_timer *timer)
{
	(void)wf_unpark(container_of(timer, struct wf_thread, timer), WF_WAKE_TIMEOUT);
}

static struct wf_thread *describe_wait(enum wf_wait kind, uint64_t what)
{
	struct wf_thread *self = wf_self();
	int64_t now = wf_load_relaxed(&wf_rt.coarse_now);

	/* Once in a tick: hogs that wait for each other's locks for an instant, a thousand times a second, stay hogs. */
	if (now != self->wait_since)
		self->hog = wf_habit_fall(WF_HABIT_HOG, self->hog) & 15u;
	self->wait_kind = (uint8_t)kind;
	self->wait_what = what;
	wf_store_relaxed(&self->gathers, false);
	self->wait_since = now;
	return self;
}

void wf_park_begin(uint32_t flags, enum wf_wait kind, uint64_t what)
{
	/* Before the thread is on any list: a waker that finds it there must see PARKING. */
	wf_store_seq_cst(&describe_wait(kind, what)->state, WF_PARKING | flags);
}

void wf_park_begin_before_lock(uint32_t flags, enum wf_wait kind, uint64_t what)
{
	wf_store_release(&describe_wait(kind, what)->state, WF_PARKING | flags);
}

static enum wf_reason reason_of(uint32_t state)
{
	return (enum wf_reason)(state >> WF_REASON_SHIFT);
}

/* Learn whether this thread usually parks right after it woke somebody: then the woken one stays here. */
static void learn_habit(struct wf_thread *self)
{
	unsigned habit = self->parks_after_wake;

	if (!self->woke_at)
		return;
	if ((wf_cpu_cycles() - self->woke_at) % (1ul << WF_WOKE_BITS) <
	    wf_span_cycles(WF_SPAN_PARKS_SOON))
		habit = wf_habit_rise(WF_HABIT_PARKS_SOON, habit, 1);
	else
		habit = wf_habit_fall(WF_HABIT_PARKS_SOON, habit);
	wf_store_hint(&self->parks_after_wake, (uint8_t)habit);
	self->woke_at = 0;
}

void wf_park_describe(enum wf_wait kind, uint64_t what)
{
	learn_habit(describe_wait(kind, what));
}

void wf_park_tell(struct wf_scopes *sc)
{
	struct wf_thread *t = sc->thread;

	/* Our caller has stored why, and then made a barrier; see scope.h. */
	if (!wf_unpark(t, WF_WAKE_INTERRUPTED) && wf_load_seq_cst(&sc->in_call))
		wf_call_break(t);
}

static void fire_scope(struct wf_timer *timer)
{
	struct wf_scopes *sc = container_of(timer, struct wf_scopes, timer);

	wf_store_seq_cst(&sc->armed, WF_NEVER); /* before our look at its state */
	wf_step();
	wf_park_tell(sc);
}

static void arm_scope(struct wf_scopes *sc, int64_t until)
{
	if (sc->timer.fire)
		wf_wheel_cancel(&wf_rt.wheel, &sc->timer);
	wf_timer_init(&sc->timer, fire_scope);
	wf_store_release(&sc->armed, until);
	if (until == WF_NEVER)
		return;
	if (wf_wheel_add(&wf_rt.wheel, &sc->timer, until))
		wf_timers_first(until);
}

/* The state is stored, and a barrier or a lock came after that. */
static WF_NOINLINE void begin_scoped_wait(struct wf_thread *self)
{
	int64_t until;

	if (!(wf_load_relaxed(&self->state) & WF_REACHED))
		return;
	if (wf_scopes_begin_wait(self->scopes, &until))
		(void)wf_unpark(self, WF_WAKE_INTERRUPTED);
	else if (until != WF_NEVER)
		arm_scope(self->scopes, until);
}

/* A call that is made although its scopes are over, as it may not have to wait, is broken if it does. */
#define GRACE_NS WF_MS

void wf_park_begin_call(struct wf_scopes *sc)
{
	int64_t until;

	wf_store_seq_cst(&sc->in_call, 1u); /* before our look at is_told and armed */
	wf_step();
	if (wf_scopes_begin_wait(sc, &until))
		until = wf_now() + GRACE_NS;
	else
		until = sc->in_once ? wf_scopes_until_once(sc) : sc->until;
	/* No sooner, either: a call with a time limit that is broken for nothing begins to wait anew. */
	if (wf_load_relaxed(&sc->armed) == until)
		return;
	arm_scope(sc, until);
	wf_direct_see_to_poller(); /* the thread does not park */
}

void wf_park_end_call(struct wf_scopes *sc)
{
	wf_store_release(&sc->in_call, 0u);
}

enum wf_reason wf_park(int64_t deadline)
{
	struct wf_thread *self = wf_self();
	enum wf_reason reason;
	bool has_deadline = deadline != WF_NEVER;

	if (WF_UNLIKELY(self->bound)) { /* its kernel thread keeps the time */
		self->bound->bound_until = deadline;
		has_deadline = false;
	}
	if (has_deadline) {
		wf_timer_init(&self->timer, fire_deadline);
		if (wf_wheel_add(&wf_rt.wheel, &self->timer, deadline))
			wf_timers_first(deadline);
	}
	if (WF_UNLIKELY(self->scopes != NULL))
		begin_scoped_wait(self);
	wf_step();
	/* A signal posted before PARKING was stored found nobody to interrupt; its attention bit came first. */
	if (wf_load_seq_cst(&self->attention) & WF_ATT_SIGNAL)
		(void)wf_unpark(self, WF_WAKE_INTERRUPTED);
	if (wf_state_of(wf_load_acquire(&self->state)) == WF_PARKING) {
		learn_habit(self);
		wf_own_kthread()->count.parks++;
		WF_TRACE(wf_own_kthread(), WF_EV_PARK, self->wait_kind, self->wait_what);
		wf_worker_switch_away(WF_PREV_PARK);
	}
	if (has_deadline)
		wf_wheel_cancel(&wf_rt.wheel, &self->timer);
	reason = reason_of(wf_load_acquire(&self->state));
	self->wait_kind = WF_WAIT_NONE;
	wf_store_release(&self->state, WF_RUNNING);
	return reason;
}

enum wf_reason wf_park_abort(void)
{
	struct wf_thread *self = wf_self();
	uint32_t old = wf_exchange(&self->state, (uint32_t)WF_RUNNING);

	self->wait_kind = WF_WAIT_NONE;
	return reason_of(old);
}

/* The race of wakers. PARKED: its registers are saved and the winner pushes it. PARKING: its successor does. */
WF_INLINE enum wf_state win(struct wf_thread *t, enum wf_reason reason)
{
	uint32_t s = wf_load_acquire(&t->state);
	struct wf_kthread *k = wf_own_kthread();

	for (;;) {
		enum wf_state now = wf_state_of(s);
		uint32_t to = (uint32_t)reason << WF_REASON_SHIFT;

		if (now != WF_PARKING && now != WF_PARKED)
			return WF_RUNNING;
		if (reason == WF_WAKE_INTERRUPTED && !(s & WF_INTR))
			return WF_RUNNING;
		to |= now == WF_PARKED ? WF_READY : WF_WOKEN;
		wf_step();
		if (!wf_cas(&t->state, &s, to))
			continue;
		k->count.unparks++;
		WF_TRACE(k, WF_EV_UNPARK, t->tid, reason);
		return now;
	}
}

bool wf_unpark(struct wf_thread *t, enum wf_reason reason)
{
	enum wf_state was = win(t, reason);

	wf_step();
	if (was == WF_PARKED)
		wf_worker_ready(t);
	return was != WF_RUNNING;
}

bool wf_unpark_on(struct wf_thread *t, enum wf_reason reason, struct wf_worker *w)
{
	enum wf_state was = win(t, reason);

	if (was == WF_PARKED) {
		wf_store_relaxed(&t->gathers, true);
		if (w == wf_own_kthread()->worker)
			wf_worker_ready(t);
		else
			wf_worker_ready_on(w, t);
	}
	return was != WF_RUNNING;
}

#define YIELDS_PER_LOOK 16u

#define RARELY 10u /* so many times as long, where who is waited for seems to have a processor */
#define LOOKED_AT 2u

/*
 * On some other worker something else is done, or its kernel thread waits for a processor. A guess: of many a few are looked
 * at, whose state has to come from another processor's cache, and others the next time.
 */
static bool is_anybody_stuck(const struct wf_worker *self, uint64_t now)
{
	uint64_t span = wf_span_cycles(WF_SPAN_YIELDS);
	uint32_t nr = wf_rt.nr_workers - 1, first = nr ? now / span % nr : 0;

	for (uint32_t i = 0; i < WF_MIN(nr, LOOKED_AT); i++) {
		uint32_t index = (self->index + 1 + (first + i) % nr) % wf_rt.nr_workers;
		struct wf_worker *w = &wf_rt.workers[index];
		int64_t ago = (int64_t)(now - wf_load_hint(&w->yields_at));

		if (wf_worker_is_running(w) && ago > (int64_t)(2 * span))
			return true;
	}
	return false;
}

/* At most once in a span. */
static bool is_due(const struct wf_worker *w, bool is_alone, uint64_t before, uint64_t now)
{
	uint64_t ago = now - w->yielded_at, span = wf_span_cycles(WF_SPAN_YIELDS);

	if (is_alone || ago >= RARELY * span)
		return ago >= span;
	return ago >= span && now / span != before / span && is_anybody_stuck(w, now);
}

/*
 * A thread that yields in a loop waits for somebody, and so do all on a worker that do nothing but yield to one another. If that one
 * is on another worker whose kernel thread waits for a CPU, it may be ours that it waits for: other programs, or fewer CPUs
 * than workers. While all workers do nothing else they have their CPUs, and to give ours away would be to wait for it.
 */
static void yield_to_kernel(struct wf_worker *w, bool is_alone)
{
	uint64_t now, before = w->yields_at;
	bool does_more;

	if (w->yields_left--)
		return;
	does_more = w->picks - w->yields_since > YIELDS_PER_LOOK;
	w->yields_since = w->picks;
	now = wf_cpu_cycles();
	w->yields_left = now - before > wf_span_cycles(WF_SPAN_YIELDS) ? 0 : YIELDS_PER_LOOK - 1;
	wf_store_hint(&w->yields_at, now);
	if (does_more || !is_due(w, is_alone, before, now))
		return;
	w->yielded_at = now;
	(void)sys0(__NR_sched_yield);
}

/* Apart, so that a yield nobody records saves no registers for it. */
static WF_NOINLINE void leave_recorded(struct wf_kthread *k, enum wf_prev_action action)
{
	WF_TRACE(k, WF_EV_YIELD, 0, 0);
	wf_worker_switch_away(action);
}

static void let_others_run(enum wf_prev_action action)
{
	struct wf_kthread *k = wf_own_kthread();
	struct wf_worker *w = k->worker;

	if (WF_UNLIKELY(!w)) {
		(void)sys0(__NR_sched_yield);
		return;
	}
	wf_rescue_take_over(k);
	if (!wf_runq_nr(&w->rq) && !wf_load_relaxed(&w->inbox) && !wf_crowd_has_offer()) {
		/* A loop of yields may wait for a thread that waits for I/O, with no other worker to look. */
		wf_worker_poll();
		if (!wf_runq_nr(&w->rq)) {
			yield_to_kernel(w, true);
			return;
		}
	} else if (action == WF_PREV_YIELD) {
		yield_to_kernel(w, false);
	}
	/* A yield is the thread's own wish, and need keep nobody waiting: it only goes on when a slice begins. */
	if ((action != WF_PREV_YIELD || k->cur->slice_left <= 0) && wf_worker_keeps(w, k->cur))
		return;
	if (action == WF_PREV_GAVE_WAY)
		action = wf_balance_leave(k, action);
	if (WF_UNLIKELY(wf_load_hint(&wf_trace.wanted)))
		leave_recorded(k, action);
	else
		wf_worker_switch_away(action);
}

void wf_yield(void)
{
	let_others_run(WF_PREV_YIELD);
}

/*
 * How long a thread that finds its data without waiting keeps others from the worker. Longer turns serve more, because
 * what the thread works on stays in the caches: so a few who are queued are to wait for a millisecond in all. Of many
 * each has about 100 us, as long as a turn of a thread that waits may well be. An inbox has not been counted.
 */
static bool is_enough(struct wf_worker *w, uint64_t cycles)
{
	uint32_t nr = wf_runq_nr(&w->rq);

	if (cycles <= wf_span_cycles(WF_SPAN_FINDS))
		return false;
	return wf_load_relaxed(&w->inbox) ||
	       (nr && cycles > wf_span_cycles(WF_SPAN_ROUND) / (nr + 1));
}

void wf_found_ready(void)
{
	struct wf_worker *w = wf_own_kthread()->worker;
	uint64_t began, now;
	bool polls;

	if (!w)
		return;
	/* The clock is not read for the first find of a turn: who answers one request finds once. */
	began = w->turn_began;
	if (w->found_in != began) {
		w->found_in = began;
		return;
	}
	polls = !wf_load_relaxed(&wf_rt.nr_idle) && wf_rt.io->has_waiters();
	if (!polls && !wf_runq_nr(&w->rq) && !wf_load_relaxed(&w->inbox))
		return;
	if (!began) {
		wf_worker_begin_turn(w);
		return;
	}
	now = wf_cpu_cycles();
	if (polls && now - w->polled_at > wf_span_cycles(WF_SPAN_POLL))
		wf_worker_poll();
	if (is_enough(w, now - began))
		(void)wf_fetch_or(&wf_self()->attention, WF_ATT_RESCHED);
}

void wf_give_way(void)
{
	let_others_run(WF_PREV_GAVE_WAY);
}
