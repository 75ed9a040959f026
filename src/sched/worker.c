// SPDX-License-Identifier: Apache-2.0
/*
 * The worker: picks the next thread, switches to it, and looks after the one it left.
 *
 * A switch goes from thread to thread without a detour; only a worker without work goes back to its own
 * stack. The thread that runs after a switch first finishes it (wf_worker_finish_switch): only then are the
 * predecessor's registers saved and may others run it.
 */
#include "sched/worker.h"
#include "arch/arch.h"
#include "base/die.h"
#include "sched/account.h"
#include "sched/bind.h"
#include "sched/crowd.h"
#include "sched/direct.h"
#include "sched/idle.h"
#include "sched/inbox.h"
#include "sched/monitor.h"
#include "sched/park.h"
#include "sched/rate.h"
#include "sched/rescue.h"
#include "sched/runtime.h"
#include "sched/shuffle.h"
#include "sched/width.h"

#define TURN_SHORT (100 * WF_US / WF_VTIME_NS)
#define POLL_EVERY_PICKS 61 /* a prime, so that it does not fall into step with a ring of threads */

/* t's time is that of the worker where it ran last, which is not w. One that was bound all the time has run on none. */
static void adopt(struct wf_worker *w, struct wf_thread *t)
{
	wf_runq_adopt(&w->rq, t, t->nr_switches && t->home ? &t->home->rq : NULL);
}

void wf_worker_push(struct wf_worker *w, struct wf_thread *t, enum wf_place place)
{
	if (t->slice_left <= 0)
		t->slice_left = (int32_t)wf_rt.slice_ns;
	if (t->home != w || WF_UNLIKELY(!t->nr_switches))
		adopt(w, t);
	if (wf_is_shuffled())
		wf_shuffle_order(t);
	wf_runq_push(&w->rq, t, place);
}

/*
 * A thread that comes from another worker because its slice was over there was not woken: ahead of those who were, it would
 * keep them waiting for a whole slice of this worker, too.
 */
static enum wf_place place_from_inbox(const struct wf_thread *t)
{
	return t->slice_left <= 0 && t->nr_switches ? WF_PLACE_TAIL : WF_PLACE_WOKEN;
}

static void take_in(struct wf_worker *w, struct wf_thread *t)
{
	bool are_several = t && t->next;

	while (t) {
		struct wf_thread *next = t->next;

		wf_worker_push(w, t, place_from_inbox(t));
		t = next;
	}
	if (!are_several)
		return;
	/* A thread that began to wait directly while we had them saw none of them; pairs with its look at all queues. */
	wf_fence_seq_cst(&w->rq.nr);
	if (wf_load_seq_cst(&wf_rt.nr_direct))
		wf_idle_wake();
}

static void drain_inbox(struct wf_worker *w)
{
	take_in(w, wf_inbox_take(w));
}

/*
 * The time since that was asked last is t's own, on w. A turn that is far longer than usual may be none of it:
 * the kernel may have taken the processor away, and no thread is to pay for that with a wait behind all others. One that
 * has become long is believed after a few.
 */
static void charge_turn(struct wf_worker *w, struct wf_thread *t)
{
	uint64_t cycles = wf_cpu_cycles(), began = w->turn_began, usual = t->turn, took = usual;

	wf_store_hint(&w->turn_began, cycles);
	if (WF_UNLIKELY(t->slice_left < 0)) { /* counted, not measured, for the same reason */
		wf_runq_charge(t, wf_runq_slice(-(int64_t)t->slice_left));
		t->slice_left = 0;
		return;
	}
	if (began) {
		took = WF_MIN(wf_cycles_vtime(cycles - began), 4 * usual + TURN_SHORT);
		t->turn = WF_MIN((3 * usual + took) / 4, (uint64_t)UINT16_MAX) & UINT16_MAX;
	}
	wf_runq_charge(t, took);
}

void wf_worker_begin_turn(struct wf_worker *w)
{
	wf_store_hint(&w->turn_began, wf_cpu_cycles());
}

/*
 * A thread that wakes another usually waits itself soon, and goes on until then. But a hog gives way to a thread that is none, as on
 * Linux: else one that keeps taking and releasing a lock in a loop would never let the thread that it wakes have it. It
 * keeps the rest of its slice: else a thread that computes and wakes others often would get next to nothing beside threads
 * that only compute.
 */
static bool gives_way(const struct wf_thread *waker, const struct wf_thread *t)
{
	return wf_habit_holds(WF_HABIT_HOG, waker->hog) && t->hog < waker->hog;
}

/*
 * Two more cases, if no worker is idle: a thread's first wake-up, since many a new thread tells its maker that it is
 * there and then computes; and, for a while, a wake-up of a thread that such a one kept waiting once.
 */
static bool gives_way_alone(struct wf_thread *waker, struct wf_thread *t)
{
	bool is_first = !waker->has_woken;
	bool was_kept = wf_habit_holds(WF_HABIT_HURRIES, t->hurry);

	waker->has_woken = true;
	t->hurry = wf_habit_fall(WF_HABIT_HURRIES, t->hurry) & 0xff;
	return is_first || was_kept;
}

/* To look costs a tenth of a switch, and twice: a habit that is sure is looked at every eighth time. */
static bool is_looked_at(struct wf_thread *waker)
{
	waker->nr_wakes++;
	return !waker->nr_wakes || !wf_habit_is_sure(WF_HABIT_PARKS_SOON, waker->parks_after_wake);
}

/* By the door, or by who is bound: it goes where it ran last. */
static void ready_from_outside(struct wf_thread *t)
{
	struct wf_worker *home = t->home ? t->home : &wf_rt.workers[0];
	bool is_hog = wf_habit_holds(WF_HABIT_HOG, t->hog); /* while t is ours */

	wf_inbox_push(home, t);
	/* our push before our look at the sleepers; pairs with idle */
	wf_fence_seq_cst(&home->inbox);
	wf_width_submitted(home);
	if (wf_idle_is_anybody())
		wf_idle_wake();
	else
		wf_monitor_preempt_for_wake(home, is_hog ? NULL : t);
}

/* By a thread that runs on w: it runs next there, within the waker's slice, unless another worker takes it. */
static void ready_by_thread(struct wf_worker *w, struct wf_thread *waker, struct wf_thread *t)
{
	bool alone = !wf_runq_nr(&w->rq), is_new = !t->nr_switches;
	/* A new thread waits for nothing, and comes behind all others. A waker that is about to wait gives way anyhow. */
	bool may_give = !is_new && wf_state_of(waker->state) == WF_RUNNING;
	bool gives = may_give && gives_way(waker, t); /* while t is ours */
	bool gives_alone = may_give && gives_way_alone(waker, t), has_free;

	if (is_new && alone)
		w->newborn_in = w->picks;
	if (is_new || t->home != w || !wf_runq_put_handoff(&w->rq, t))
		wf_worker_push(w, t, is_new ? WF_PLACE_TAIL : WF_PLACE_HANDOFF);
	if (!w->rq.is_private)               /* else we carry the only worker: nobody sleeps */
		wf_fence_seq_cst(&w->rq.nr); /* as above */
	has_free = !w->rq.is_private && wf_idle_is_anybody();
	if (gives || (gives_alone && !has_free))
		(void)wf_fetch_or(&waker->attention, WF_ATT_RESCHED);
	if (!has_free)
		return;
	waker->woke_at = is_looked_at(waker) ? wf_cpu_cycles() % (1ul << WF_WOKE_BITS) : 0;
	if (alone && wf_habit_holds(WF_HABIT_PARKS_SOON, waker->parks_after_wake))
		return;
	wf_idle_wake();
}

/* By w's carrier between two threads, from the poller or the timers: home, if its turn comes soon there, else here. */
static void ready_by_carrier(struct wf_worker *w, struct wf_thread *t)
{
	struct wf_worker *home = t->home;

	if (home && home != w && wf_worker_comes_soon(home)) {
		wf_inbox_push(home, t);
		wf_fence_seq_cst(
			&home->inbox); /* as above, should it have gone to sleep meanwhile */
		wf_width_submitted(home);
		if (!wf_worker_is_running(home) && wf_idle_is_anybody())
			wf_idle_wake();
		return;
	}
	wf_worker_push(w, t, WF_PLACE_WOKEN);
	if (w->rq.is_private) /* as above: who is counted as asleep is we, back from the poller */
		return;
	wf_fence_seq_cst(&w->rq.nr); /* as above */
	if (wf_runq_nr(&w->rq) > 1)
		wf_idle_wake();
}

void wf_worker_ready(struct wf_thread *t)
{
	struct wf_kthread *k = wf_own_kthread();
	/* NULL for the door and for who is bound */
	struct wf_worker *w = wf_load_relaxed(&k->worker), *drawn = NULL;
	struct wf_thread *waker = k->cur;

	if (WF_UNLIKELY(t->bound)) {
		wf_bind_ready(t);
		return;
	}
	if (wf_is_shuffled())
		drawn = wf_shuffle_worker(w);
	if (WF_UNLIKELY(drawn))
		wf_worker_ready_on(drawn, t);
	else if (!w)
		ready_from_outside(t);
	else if (waker && wf_state_of(waker->state) != WF_DEAD)
		ready_by_thread(w, waker, t);
	else
		ready_by_carrier(w, t);
}

void wf_worker_ready_on(struct wf_worker *w, struct wf_thread *t)
{
	wf_inbox_push(w, t);
	wf_fence_seq_cst(&w->inbox); /* as above */
	wf_width_submitted(w);
	if (wf_idle_is_anybody())
		wf_idle_wake();
}

void wf_worker_pass_wake_on(bool is_swallowed)
{
	if (!is_swallowed)
		return;
	wf_fetch_sub(&wf_rt.nr_searching, 1u);
	wf_idle_wake();
}

void wf_worker_poll(void)
{
	if (wf_rt.io->has_waiters())
		wf_worker_pass_wake_on(wf_rt_poll(0));
}

struct wf_thread *wf_worker_pick(struct wf_worker *w)
{
	struct wf_thread *t;
	bool new_slice;

	wf_store_hint(&w->picks, w->picks + 1);
	if (w->picks % POLL_EVERY_PICKS == 0 || w->turn_began > w->poll_due) {
		w->poll_due = w->turn_began + wf_span_cycles(WF_SPAN_POLL);
		/* The kernel takes the processor from a real-time thread for none of its priority: one in a call, a child. */
		if (WF_UNLIKELY(wf_rt.is_realtime))
			(void)sys0(__NR_sched_yield);
		wf_rescue_take_over(wf_own_kthread());
		wf_worker_poll();
	}
	if (wf_load_relaxed(&w->inbox))
		drain_inbox(w);
	if (!wf_runq_nr(&w->rq))
		return NULL;
	t = wf_runq_take_handoff(&w->rq);
	if (t)
		return t;
	t = wf_runq_pop(&w->rq, &new_slice);
	if (new_slice)
		wf_store_relaxed(&w->slice_seq, w->slice_seq + 1);
	return t;
}

bool wf_worker_keeps(struct wf_worker *w, struct wf_thread *self)
{
	wf_rescue_take_over(wf_own_kthread());
	if (wf_crowd_has_offer())
		take_in(w, wf_crowd_take());
	drain_inbox(w);
	charge_turn(w, self);
	if (wf_is_shuffled() && wf_runq_nr(&w->rq))
		return false;
	if (!wf_runq_keeps(&w->rq, self))
		return false;
	if (self->slice_left <= 0) {
		self->slice_left = (int32_t)wf_rt.slice_ns;
		wf_store_relaxed(&w->slice_seq, w->slice_seq + 1);
	}
	return true;
}

/* Load everything of t but its registers. We own t: it is on no queue. */
static void load(struct wf_kthread *k, struct wf_thread *t)
{
	uint32_t reason = t->state & ~(WF_STATE_MASK | WF_INTR);

	wf_store_relaxed(&t->state, reason | WF_RUNNING);
	wf_store_release(&t->kthread, k);
	t->nr_switches++;
	k->count.switches++;
	if (k->tls != t->tls) {
		k->tls = t->tls;
		wf_arch_set_tls(t->tls);
	}
	WF_TRACE(k, WF_EV_RUN, t->tid, k->worker ? k->worker->index + 1 : 0);
	wf_store_relaxed(&k->cur, t);
}

static void prepare_to_run(struct wf_kthread *k, struct wf_thread *t)
{
	struct wf_worker *w = k->worker;

	t->home = w;
	wf_store_relaxed(&w->slice_began, wf_load_relaxed(&wf_rt.coarse_now));
	load(k, t);
}

void wf_worker_charge(struct wf_kthread *k, struct wf_worker *w, bool is_rough)
{
	int64_t ran = wf_load_relaxed(&wf_rt.coarse_now) - w->slice_began;

	if (!is_rough || k->cur->slice_left < 0 || (ran && !wf_runq_nr(&w->rq))) {
		charge_turn(w, k->cur);
	} else {
		/* Yields beside others are paid by ticks: without that a thread that is slices ahead of them is never due. */
		if (ran)
			wf_runq_charge(k->cur, wf_runq_slice(WF_MIN(ran, wf_rt.slice_ns)));
		wf_store_hint(&w->turn_began, 0ul);
	}
	if (k->cur->slice_left > 0)
		k->cur->slice_left = (int32_t)WF_MAX(k->cur->slice_left - ran, 0);
	if (WF_LIKELY(!k->cpu_began))
		wf_store_relaxed(&k->cur->run_ns, k->cur->run_ns + ran);
}

/*
 * Nobody waits for w but the thread that the running one has just woken or made. The one that it has made may be somebody else's by
 * now, and another one here: then a turn goes by the ticks, as all of them do that end in a hand-off.
 */
static bool is_alone(const struct wf_worker *w)
{
	return wf_runq_nr(&w->rq) <=
	       (uint32_t)((w->rq.handoff != NULL) | (w->newborn_in == w->picks));
}

static void leave(struct wf_kthread *k, enum wf_prev_action action, bool goes_by_ticks)
{
	struct wf_thread *self = k->cur;
	struct wf_worker *w = k->worker;

	self->tls = k->tls = wf_cpu_tls(); /* a program may write it without a call */
	if (w)
		wf_worker_charge(k, w, goes_by_ticks);
	if (WF_UNLIKELY(wf_load_relaxed(&wf_rt.accounts)))
		wf_account_leave(k, self);
	k->prev = self;
	k->prev_action = action;
}

/* From self, which was left, to t or, without one, to the scheduler's own context; and back. */
static void switch_to(struct wf_kthread *k, struct wf_thread *self, struct wf_thread *t)
{
	if (t) {
		prepare_to_run(k, t);
		wf_arch_switch(&self->sp, t->sp);
	} else {
		wf_store_relaxed(&k->cur, (struct wf_thread *)NULL);
		wf_arch_switch(&self->sp, k->loop_sp);
	}
	wf_worker_finish_switch(wf_own_kthread()); /* maybe another kernel thread */
}

/* The same with the vector registers as they were. The room is that of a preempted context. */
static WF_NOINLINE void switch_with_vectors(struct wf_kthread *k, struct wf_thread *self,
					    struct wf_thread *t)
{
	void *area = k->save_area ? k->save_area : wf_slab_get(&wf_rt.save_areas);

	WF_ASSERT(area); /* out of memory */
	k->save_area = NULL;
	wf_arch_store_vectors(area);
	switch_to(k, self, t);
	wf_arch_load_vectors(area);
	wf_slab_put(&wf_rt.save_areas, area);
}

void wf_worker_switch_away(enum wf_prev_action action)
{
	struct wf_kthread *k = wf_own_kthread();
	struct wf_worker *w = k->worker;
	struct wf_thread *self = k->cur;
	bool goes_by_ticks = w && (action == WF_PREV_YIELD || is_alone(w));
	struct wf_thread *t = w ? wf_worker_pick(w) : NULL;

	if (!t && (action == WF_PREV_YIELD || action == WF_PREV_GAVE_WAY))
		return;
	if (t && action == WF_PREV_PARK && !w->rq.is_private)
		wf_direct_see_to_poller();
	leave(k, action, goes_by_ticks);
	if (WF_UNLIKELY(self->keeps_vectors))
		switch_with_vectors(k, self, t);
	else
		switch_to(k, self, t);
}

void wf_worker_switch_last(struct wf_kthread *k, enum wf_prev_action action)
{
	bool goes_by_ticks = k->worker && is_alone(k->worker);
	struct wf_thread *t = k->worker ? wf_worker_pick(k->worker) : NULL;

	leave(k, action, goes_by_ticks);
	if (t) {
		prepare_to_run(k, t);
		wf_arch_switch_last(t->sp);
	}
	wf_store_relaxed(&k->cur, (struct wf_thread *)NULL);
	wf_arch_switch_last(k->loop_sp);
}

static void push_prev(struct wf_kthread *k, struct wf_thread *t, enum wf_place place)
{
	struct wf_worker *w = k->worker;

	if (!w) {
		wf_worker_ready(t);
		return;
	}
	wf_worker_push(w, t, place);
	if (k->cur && wf_idle_is_anybody()) {
		wf_fence_seq_cst(&w->rq.nr); /* our push before our look at the sleepers */
		wf_idle_wake();
	}
}

static enum wf_place place_after(enum wf_prev_action action, const struct wf_thread *t)
{
	if (action == WF_PREV_YIELD)
		return WF_PLACE_YIELDED;
	return action == WF_PREV_GAVE_WAY && t->slice_left > 0 ? WF_PLACE_WOKEN : WF_PLACE_TAIL;
}

static void commit_park(struct wf_kthread *k, struct wf_thread *t)
{
	uint32_t s = wf_load_acquire(&t->state);

	for (;;) {
		wf_step();
		if (wf_state_of(s) == WF_PARKING) {
			if (wf_cas(&t->state, &s, (s & WF_INTR) | WF_PARKED))
				return;
			continue;
		}
		/* A waker came between park_begin and now: nobody else will push. */
		WF_ASSERT(wf_state_of(s) == WF_WOKEN);
		wf_store_release(&t->state, (s & ~WF_STATE_MASK) | WF_READY);
		push_prev(k, t, WF_PLACE_WOKEN);
		return;
	}
}

void wf_worker_finish_switch(struct wf_kthread *k)
{
	struct wf_thread *t = k->prev;
	enum wf_prev_action action = (enum wf_prev_action)k->prev_action;

	if (!t)
		return;
	k->prev = NULL;
	wf_step();
	wf_store_release(&t->kthread, (struct wf_kthread *)NULL);
	switch (action) {
	case WF_PREV_PARK:
		commit_park(k, t);
		break;
	case WF_PREV_YIELD:
	case WF_PREV_GAVE_WAY:
	case WF_PREV_PREEMPT:
		wf_store_release(&t->state, WF_READY);
		push_prev(k, t, place_after(action, t));
		break;
	case WF_PREV_JOIN:
		wf_store_release(&t->state, WF_READY);
		wf_worker_ready_on(k->joins, t);
		break;
	case WF_PREV_REHOME:
		wf_store_release(&t->state, WF_READY);
		wf_worker_ready(t);
		break;
	case WF_PREV_DEAD:
		if (k->bound == t) {
			wf_store_release(&k->is_ending, true); /* before: see is_like_all() */
			wf_store_release(&k->bound, (struct wf_thread *)NULL);
		}
		wf_rt.hooks->thread_exited(t);
		break;
	case WF_PREV_NONE:
		break;
	}
}

void wf_worker_enter(struct wf_kthread *k, struct wf_thread *t)
{
	wf_worker_begin_turn(k->worker);
	prepare_to_run(k, t);
	if (WF_UNLIKELY(wf_load_relaxed(&wf_rt.accounts)))
		wf_account_begin(k);
	/* We are busy, then look whether the monitor ticks; it disarms, then looks whether anybody is busy. */
	wf_fence_seq_cst(&k->prev_action);
	wf_monitor_arm();
	wf_arch_switch(&k->loop_sp, t->sp);
}

void wf_worker_enter_bound(struct wf_kthread *k)
{
	struct wf_thread *t = k->bound;

	wf_bind_wait(k);
	load(k, t);
	wf_arch_switch(&k->loop_sp, t->sp);
}

void wf_worker_go_on(void)
{
	struct wf_kthread *k = wf_own_kthread();
	struct wf_worker *w = wf_rt_take_vacant();

	WF_TRACE(k, WF_EV_BACK, w ? w->index + 1 : 0, 0);
	if (!w) {
		wf_worker_switch_away(WF_PREV_REHOME);
		return;
	}
	wf_store_release(&w->kthread, k);
	wf_store_release(&k->worker, w);
	if (k->cur->home != w) {
		adopt(w, k->cur);
		k->cur->home = w;
	}
	wf_store_relaxed(&w->slice_began, wf_load_relaxed(&wf_rt.coarse_now));
	wf_worker_begin_turn(w);
	/* Nobody may have been busy meanwhile, and the monitor disarmed; as in wf_worker_enter(). */
	wf_fence_seq_cst(&w->kthread);
	wf_monitor_arm();
}
