// SPDX-License-Identifier: Apache-2.0
/*
 * Direct waits; see direct.h.
 *
 * A direct waiter sleeps on no queue and in no poller, but must be found like a sleeper. The word kthread.direct
 * goes from NONE to WAITS and back by its own thread; one that needs the worker makes it ENDS or SEARCH, and kicks.
 *
 * Invariant (no lost work, as in idle.c): the waiter stores WAITS, raises nr_direct, fences, then looks at every
 * queue and whether somebody sleeps in the poller or need not. A submitter pushes, fences, then reads nr_idle and
 * nr_direct. The last sleeper to leave the poller lowers nr_idle, and a worker whose thread parks has counted it among the
 * waiters or stored its deadline in the wheel; before that worker runs another thread, or rests, it reads nr_direct,
 * and whether the poller is needed. One of the two sees the other. A caller of wake() has taken the token of nr_searching
 * before it saw a sleeper, so if that one has gone since, it or the waiter that begins sees the token.
 *
 * Timers: a direct wait beside nobody in the poller ends well before the first one, and its thread parks as usual then.
 */
#include "sched/direct.h"
#include "sched/clock.h"
#include "sched/idle.h"
#include "sched/kick.h"
#include "sched/monitor.h"
#include "sched/park.h"
#include "sched/shuffle.h"

/*
 * An interrupted wait costs several times what a direct one saves. After one the worker parks as usual for a while, the
 * longer the more often it happens: then it is not the only one with something to do.
 */
#define PAUSE_FIRST 16
#define PAUSE_MAX 1024

/* Time-outs of the kernel's are late by a thousandth of their length, and a thread needs some time to go elsewhere. */
#define BEFORE_TIMER_NS (5 * WF_MS)
#define BEFORE_TIMER_PART 128
/* Nearer timers are not worth it. */
#define TIMER_IS_NEAR_NS (2 * BEFORE_TIMER_NS)

/* A descriptor is waited for, or a wake() is on its way to a sleeper who may have gone. */
static bool is_poller_needed(void)
{
	return wf_rt.io->has_waiters() || wf_load_seq_cst(&wf_rt.nr_searching);
}

static bool is_before_timers(int64_t until)
{
	int64_t next = wf_load_seq_cst(&wf_rt.wheel.next);

	return next == WF_NEVER || until <= next - BEFORE_TIMER_NS;
}

/* Of a direct wait that ends then. */
static bool is_poller_cared_for(int64_t until)
{
	return wf_load_seq_cst(&wf_rt.nr_idle) || (!is_poller_needed() && is_before_timers(until));
}

static int64_t end_before_timers(int64_t until)
{
	int64_t next = wf_load_seq_cst(&wf_rt.wheel.next), left;

	if (next == WF_NEVER)
		return until;
	left = next - wf_now();
	if (left <= TIMER_IS_NEAR_NS)
		return until;
	return WF_MIN(until, next - WF_MAX(BEFORE_TIMER_NS, left / BEFORE_TIMER_PART));
}

bool wf_direct_may_begin(void)
{
	struct wf_kthread *k = wf_own_kthread();
	struct wf_worker *w = k->worker;

	if (WF_UNLIKELY(!w))
		return k->bound != NULL; /* nobody else ever needs its kernel thread */
	if (!is_poller_cared_for(wf_load_relaxed(&wf_rt.coarse_now) + BEFORE_TIMER_NS) ||
	    (wf_is_shuffled() && wf_shuffle_below(2)))
		return false;
	if (w->direct_pause) {
		w->direct_pause--;
		return false;
	}
	return !wf_runq_nr(&w->rq) && !wf_load_relaxed(&w->inbox);
}

bool wf_direct_begin(enum wf_wait kind, uint64_t what, int64_t *until)
{
	struct wf_kthread *k = wf_own_kthread();
	struct wf_worker *w = k->worker;

	if (WF_UNLIKELY(!w)) {
		wf_park_describe(kind, what);
		return true;
	}
	*until = end_before_timers(*until);
	wf_store_relaxed(&k->direct_until, *until);
	wf_store_seq_cst(&k->direct, (uint32_t)WF_DIRECT_WAITS);
	wf_fetch_add(&wf_rt.nr_direct, 1u);
	/* our entry before our look; pairs with submitters and sleepers */
	wf_fence_seq_cst(&wf_rt.nr_direct);
	if (!is_poller_cared_for(*until) || wf_idle_is_work_around(w)) {
		wf_direct_end();
		w->direct_pause = PAUSE_FIRST;
		return false;
	}
	wf_park_describe(kind, what);
	wf_worker_charge(k, w, true);
	wf_worker_sleeps(w, wf_now());
	k->count.directs++;
	WF_TRACE(k, WF_EV_DIRECT, kind, what);
	return true;
}

static void learn(struct wf_worker *w, bool was_interrupted)
{
	if (!was_interrupted) {
		w->direct_trouble -= w->direct_trouble > 0;
		return;
	}
	w->direct_trouble = (uint16_t)WF_MIN(2 * w->direct_trouble + PAUSE_FIRST, PAUSE_MAX);
	w->direct_pause = w->direct_trouble;
}

void wf_direct_end(void)
{
	struct wf_kthread *k = wf_own_kthread();
	struct wf_worker *w = k->worker;
	enum wf_direct was;

	k->cur->wait_kind = WF_WAIT_NONE;
	if (WF_UNLIKELY(!w))
		return;
	/* In this order: whoever counts on nr_direct finds a wait that can still be interrupted. */
	wf_fetch_sub(&wf_rt.nr_direct, 1u);
	was = (enum wf_direct)wf_exchange_seq_cst(&k->direct, (uint32_t)WF_DIRECT_NONE);
	wf_store_hint(&w->has_idled, true);
	/* The time of the wait is not its slice's. */
	wf_store_relaxed(&wf_rt.coarse_now, wf_now());
	wf_store_relaxed(&w->slice_began, wf_rt.coarse_now);
	wf_worker_wakes(w, wf_rt.coarse_now);
	wf_worker_begin_turn(w);
	WF_TRACE(k, WF_EV_BACK, w->index + 1, 0);
	/* We are busy again, and the monitor may have disarmed; as in wf_worker_enter(). */
	wf_fence_seq_cst(&k->direct);
	wf_monitor_arm();
	learn(w, was != WF_DIRECT_WAITS);
	/* As any searcher that has found something: our own queue, or what woke us. */
	if (was == WF_DIRECT_SEARCH && wf_fetch_sub(&wf_rt.nr_searching, 1u) == 1)
		wf_idle_wake();
}

static bool interrupt(struct wf_kthread *k, enum wf_direct to)
{
	uint32_t seen = wf_load_seq_cst(&k->direct);
	struct wf_thread *t;

	do
		if (seen == WF_DIRECT_NONE || seen >= (uint32_t)to)
			return false;
	while (!wf_cas(&k->direct, &seen, (uint32_t)to));
	if (seen == WF_DIRECT_ENDS)
		return true; /* its kick is on the way */
	t = wf_load_relaxed(&k->cur);
	if (t) {
		(void)wf_fetch_or(&t->attention, WF_ATT_RESCHED);
		wf_kick(k);
	}
	return true;
}

static bool interrupt_one(enum wf_direct to)
{
	for (uint32_t i = 0; i < wf_rt.nr_workers; i++) {
		struct wf_kthread *k = wf_load_acquire(&wf_rt.workers[i].kthread);

		if (k && interrupt(k, to))
			return true;
	}
	return false;
}

static void interrupt_late_ones(void)
{
	for (uint32_t i = 0; i < wf_rt.nr_workers; i++) {
		struct wf_kthread *k = wf_load_acquire(&wf_rt.workers[i].kthread);

		if (k && !is_before_timers(wf_load_relaxed(&k->direct_until)))
			(void)interrupt(k, WF_DIRECT_ENDS);
	}
}

bool wf_direct_wake(void)
{
	return wf_load_seq_cst(&wf_rt.nr_direct) && interrupt_one(WF_DIRECT_SEARCH);
}

void wf_direct_replace(void)
{
	if (wf_load_seq_cst(&wf_rt.nr_idle))
		return;
	if (is_poller_needed())
		(void)interrupt_one(WF_DIRECT_ENDS);
	else
		interrupt_late_ones();
}
