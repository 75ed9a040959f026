// SPDX-License-Identifier: Apache-2.0
/*
 * The monitor: a look at every worker from outside, by the door, while anything runs.
 *
 * It preempts a thread whose slice is over while others wait, takes the worker of a kernel thread that is
 * stuck in a call, keeps the coarse clock, and stands in for the poller while no worker sleeps there.
 * It disarms itself when every worker is idle, so an idle program has no ticks.
 */
#include "sched/park.h"
#include "sched/runtime.h"
#include "sched/worker.h"

#include <errno.h>

#define LONGEST_TICK_NS (5 * WF_MS)
#define RETAKE_TICK_NS (200 * WF_US) /* while a worker sits in a call and somebody waits for it */

/* Twice in a slice, so that one lasts no longer than one and a half. */
static int64_t tick_ns(void)
{
	return WF_MIN(LONGEST_TICK_NS, wf_rt.slice_ns / 2);
}

void wf_kick(struct wf_kthread *k)
{
	if (wf_exchange_seq_cst(&k->kick_sent, 1u))
		return; /* one is on its way: it has not looked at the attention word yet */
	k->count.kicks++;
	/* A real-time signal needs a place in the user's queue; a standard one always has its bit. */
	if (sys_tgkill(wf_rt.pid, k->tid, WF_SIG_KICK) == -EAGAIN)
		(void)sys_tgkill(wf_rt.pid, k->tid, WF_SIG_KICK_SPARE);
}

void wf_monitor_arm(void)
{
	if (WF_LIKELY(wf_load_relaxed(&wf_rt.monitor_armed)))
		return;
	if (!wf_exchange_seq_cst(&wf_rt.monitor_armed, 1u))
		wf_kick(wf_rt.door);
}

void wf_monitor_hurry(void)
{
	wf_monitor_arm();
	if (wf_load_seq_cst(&wf_rt.monitor_until) - wf_now() > WF_MS)
		wf_kick(wf_rt.door);
}

static void preempt(struct wf_worker *w, uint32_t why)
{
	struct wf_kthread *k = wf_load_acquire(&w->kthread);

	if (!k)
		return;
	wf_store_release(&k->preempt, why);
	wf_kick(k);
}

static bool is_waiting(const struct wf_worker *w)
{
	return wf_runq_nr(&w->rq) || wf_load_relaxed(&w->inbox);
}

/* When who was woken for w may run; WF_NEVER: it does, or comes by itself. */
static int64_t look_for_woken(struct wf_worker *w, int64_t now)
{
	struct wf_kthread *k = wf_load_acquire(&w->kthread);
	int64_t at = wf_load_relaxed(&w->slice_began) + WF_WAKE_GRANULARITY_NS;

	if (k && wf_load_relaxed(&k->cur) && !wf_load_relaxed(&k->insys) && is_waiting(w)) {
		if (now < at)
			return at;
		preempt(w, WF_PREEMPT_WAKE);
	}
	wf_store_hint(&w->wants_look, false);
	return WF_NEVER;
}

void wf_monitor_preempt_for_wake(struct wf_worker *w)
{
	wf_store_hint(&w->wants_look, true);
	if (look_for_woken(w, wf_now()) != WF_NEVER && !wf_own_kthread()->is_door)
		wf_monitor_hurry();
}

/* A call that may be interrupted is, once; if that does not end it, it is like the others. */
static void stuck_in_call(struct wf_worker *w, struct wf_kthread *k, uint32_t calls)
{
	struct wf_thread *t = wf_load_relaxed(&k->cur);

	if (t && wf_load_relaxed(&t->breaks_call) && w->broken_calls != calls) {
		w->broken_calls = calls;
		wf_call_break(t);
		return;
	}
	(void)wf_call_retake(w);
}

/*
 * By the number of turns since our last look, so that no switch needs a clock; idle time counts, too. After a pause of
 * ours it says nothing.
 */
static void estimate_turn(struct wf_worker *w, int64_t now)
{
	uint32_t picks = wf_load_hint(&w->picks);
	int64_t took = now - w->seen_picks_at;

	if (took < 4 * LONGEST_TICK_NS) {
		took = took / WF_MAX(picks - w->seen_picks, 1u);
		wf_store_hint(&w->turn_ns, (uint32_t)((wf_load_hint(&w->turn_ns) + took) / 2));
	}
	w->seen_picks = picks;
	w->seen_picks_at = now;
}

/* True when somebody other than a sleeping worker needs this worker's carrier to move on soon. */
static bool look_at_worker(struct wf_worker *w, int64_t now)
{
	struct wf_kthread *k = wf_load_acquire(&w->kthread);
	uint32_t seq, calls;
	bool is_stuck;

	if (!k || !wf_worker_is_running(w))
		return false;
	estimate_turn(w, now);
	seq = wf_load_relaxed(&w->slice_seq);
	calls = wf_load_relaxed(&w->calls);
	is_stuck = wf_load_relaxed(&k->insys) == 1;
	if (is_stuck && calls == w->seen_calls && seq == w->seen_seq) {
		/* The second look in a row that finds the same call in progress. */
		stuck_in_call(w, k, calls);
		return false;
	}
	w->seen_calls = calls;
	if (seq != w->seen_seq) {
		w->seen_seq = seq;
		w->seen_at = now;
	} else if (is_waiting(w) && now - w->seen_at >= wf_rt.slice_ns && !is_stuck) {
		preempt(w, WF_PREEMPT_SLICE);
		w->seen_at = now;
	}
	return is_stuck && (is_waiting(w) || !wf_load_relaxed(&wf_rt.nr_idle));
}

#define MEASURE_FROM_NS WF_MS
#define MEASURE_TO_NS (10 * WF_SEC) /* the clock is disciplined: its speed may change */

static void measure_cycles(int64_t now)
{
	uint64_t cycles = wf_cpu_cycles();
	int64_t took = now - wf_rt.measured_at;

	if (took >= MEASURE_FROM_NS && took <= MEASURE_TO_NS && cycles > wf_rt.measured_cycles)
		wf_store_relaxed(&wf_rt.vtime_per_cycle, ((uint64_t)took / WF_VTIME_NS << 32) /
								 (cycles - wf_rt.measured_cycles));
	if (took > MEASURE_TO_NS) {
		wf_rt.measured_at = now;
		wf_rt.measured_cycles = cycles;
	}
}

int64_t wf_monitor_tick(int64_t now)
{
	bool is_busy = false, is_urgent = false, is_queued = false;
	int64_t next, woken = WF_NEVER;

	wf_store_relaxed(&wf_rt.coarse_now, now);
	measure_cycles(now);
	for (uint32_t i = 0; i < wf_rt.nr_workers; i++) {
		struct wf_worker *w = &wf_rt.workers[i];

		is_urgent |= look_at_worker(w, now);
		is_busy |= wf_worker_is_running(w);
		is_queued |= is_waiting(w);
	}
	if (wf_load_seq_cst(&wf_rt.nr_lazy)) {
		is_busy = true;
		is_urgent |= !wf_load_seq_cst(&wf_rt.nr_idle);
	}
	if (is_queued)
		wf_idle_wake();
	if (!wf_load_seq_cst(&wf_rt.nr_idle)) {
		(void)wf_wheel_expire(&wf_rt.wheel, now);
		/* A wake() that found its sleeper gone would suppress all others: take it back. */
		if ((wf_rt.io->has_waiters() || wf_load_relaxed(&wf_rt.nr_searching)) &&
		    wf_rt_poll(0)) {
			wf_fetch_sub(&wf_rt.nr_searching, 1u);
			wf_idle_wake();
		}
	}
	if (!is_busy && !is_queued) {
		/* Disarm, then look again: a worker that became busy meanwhile saw us armed. */
		wf_store_seq_cst(&wf_rt.monitor_armed, 0u);
		for (uint32_t i = 0; i < wf_rt.nr_workers; i++) {
			struct wf_kthread *k = wf_load_seq_cst(&wf_rt.workers[i].kthread);

			is_busy |= (k && wf_load_seq_cst(&k->cur) &&
				    !wf_load_seq_cst(&k->direct)) ||
				   is_waiting(&wf_rt.workers[i]);
		}
		if (!is_busy && wf_load_seq_cst(&wf_rt.nr_idle))
			return WF_NEVER;
		if (!is_busy) /* nobody sleeps in the poller: the timers are ours */
			return wf_load_seq_cst(&wf_rt.wheel.next);
		wf_store_seq_cst(&wf_rt.monitor_armed, 1u);
	}
	for (uint32_t i = 0; i < wf_rt.nr_workers; i++)
		if (wf_load_hint(&wf_rt.workers[i].wants_look))
			woken = WF_MIN(woken, look_for_woken(&wf_rt.workers[i], now));
	next = now + (is_urgent ? WF_MIN(RETAKE_TICK_NS, tick_ns()) : tick_ns());
	if (!wf_load_seq_cst(&wf_rt.nr_idle))
		next = WF_MIN(next,
			      WF_MAX(wf_load_seq_cst(&wf_rt.wheel.next), now + WF_MONITOR_MIN_NS));
	return WF_MIN(next, woken);
}
