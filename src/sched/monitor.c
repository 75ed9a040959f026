// SPDX-License-Identifier: Apache-2.0
/*
 * The monitor: a look at every worker from outside, by the door, while anything runs.
 *
 * It preempts a thread whose slice is over while others wait, takes the worker of a kernel thread that is
 * stuck in a call, keeps the coarse clock, and stands in for the poller while no worker sleeps there and none
 * looks for events between its threads.
 * It disarms itself when every worker is idle, so an idle program has no ticks. One that is idle for moments only has
 * the monitor armed again each time, by a signal: that costs more than a look, so it stays armed for a while then.
 */
#include "sched/monitor.h"
#include "sched/clock.h"
#include "sched/crowd.h"
#include "sched/idle.h"
#include "sched/insys.h"
#include "sched/kick.h"
#include "sched/park.h"
#include "sched/poller.h"
#include "sched/preempt.h"
#include "sched/rate.h"
#include "sched/record.h"
#include "sched/rescue.h"
#include "sched/runtime.h"
#include "sched/shuffle.h"
#include "sched/width.h"
#include "sched/worker.h"

/*
 * A look costs 20 us and more on a virtual machine, most of it the timer's interrupt. So there is one in a slice, at its
 * end, unless something may happen meanwhile that nobody else would see.
 */
#define LONGEST_TICK_NS (10 * WF_MS)
#define BUSY_TICK_NS (5 * WF_MS) /* calls are made that may block, or events may come */
/* A slice that is over so soon is over now: the look at which it began may have been a little late. */
#define EARLY_NS(slice) ((slice) / 8)
#define RETAKE_TICK_NS (200 * WF_US) /* a worker sits in a call and somebody waits for it */

struct look {
	int64_t now;
	int64_t due;    /* the same, but for a small delay */
	bool is_urgent; /* a worker must move on soon, for somebody other than a sleeping one */
	bool is_left;   /* something is queued at a worker that nobody can carry */
	bool has_calls; /* some were made since the last look */
	int64_t first_end, last_end; /* of slices of those for whose workers others wait */
	int64_t slice;               /* the shortest of these */
};

static void note_end(struct look *l, int64_t at, int64_t slice)
{
	l->slice = WF_MIN(l->slice, slice);
	l->first_end = WF_MIN(l->first_end, at);
	l->last_end = l->last_end == WF_NEVER ? at : WF_MAX(l->last_end, at);
}

/* One look ends the slices of several workers, if that makes none half as long again; then they end together. */
static int64_t next_end(const struct look *l)
{
	return l->last_end - l->first_end > l->slice / 2 ? l->first_end : l->last_end;
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
	wf_fetch_add(&k->nr_preempting, 1u);
	wf_fence_seq_cst(&k->nr_preempting); /* our count before our look */
	wf_step();
	if (wf_load_seq_cst(&k->worker) == w) { /* or it was handed on meanwhile: see insys.c */
		wf_store_release(&k->preempt, why);
		wf_step();
		wf_kick(k);
	}
	wf_fetch_sub(&k->nr_preempting, 1u);
}

static bool is_waiting(const struct wf_worker *w)
{
	return wf_runq_nr(&w->rq) || wf_load_relaxed(&w->inbox);
}

/*
 * The thread that was woken for w last waits still. Others may have come before it in the queue, and have their whole slices:
 * they, too, make room after a moment. Thread objects stay what they are, so one that has gone elsewhere costs a switch.
 */
static bool is_woken_waiting(const struct wf_worker *w)
{
	const struct wf_thread *t = wf_load_acquire(&w->woken);

	return t && wf_state_of(wf_load_acquire(&t->state)) == WF_READY;
}

#define ASKED_AT_ONCE 4u

/* One of the others that has a processor answers. */
static void ask_others(const struct wf_worker *w)
{
	uint32_t nr = WF_MIN(wf_rt.nr_workers - 1, ASKED_AT_ONCE);

	for (uint32_t i = 0; i < nr; i++) {
		struct wf_worker *other = &wf_rt.workers[(w->index + 1 + i) % wf_rt.nr_workers];

		if (wf_worker_is_running(other))
			preempt(other, WF_PREEMPT_WAKE);
	}
}

/*
 * When the thread that was woken for w deserves the processor; WF_NEVER: it runs, or will without us. A hog that runs in a
 * later turn than at the wake-up came before it in the queue, and is left alone.
 */
static int64_t look_for_woken(struct wf_worker *w, int64_t now)
{
	struct wf_kthread *k = wf_load_acquire(&w->kthread);
	int64_t at = wf_load_relaxed(&w->slice_began) + WF_WAKE_GRANULARITY_NS;
	bool is_first = wf_load_hint(&w->picks) == wf_load_hint(&w->woken_in);

	if (k && wf_load_relaxed(&k->cur) && !wf_load_relaxed(&k->insys) && is_waiting(w) &&
	    (is_first || is_woken_waiting(w))) {
		if (now < at)
			return at;
		if (wf_crowd_offer(w, now))
			ask_others(w);
		preempt(w, WF_PREEMPT_WAKE);
		if (wf_load_acquire(&w->woken))
			return now +
			       (wf_rt.is_crowded ? WF_CROWD_ANSWER_NS : WF_WAKE_GRANULARITY_NS);
	}
	wf_store_hint(&w->told_at, 0l);
	wf_store_hint(&w->wants_look, false);
	return WF_NEVER;
}

void wf_monitor_preempt_for_wake(struct wf_worker *w, const struct wf_thread *t)
{
	wf_store_release(&w->woken, t);
	wf_store_hint(&w->woken_in, wf_load_hint(&w->picks));
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
	if (wf_call_retake(w))
		wf_own_kthread()->count.handoffs++;
}

/*
 * By the number of turns since our last look, so that no switch needs a clock; idle time counts, too. After a pause of
 * ours it says nothing.
 */
static void estimate_turn(struct wf_worker *w, int64_t now)
{
	uint32_t picks = wf_load_hint(&w->picks);
	int64_t took = now - w->seen_picks_at;

	if (took < 2 * LONGEST_TICK_NS) {
		took = took / WF_MAX(picks - w->seen_picks, 1u);
		w->seen_turn_ns = took;
		wf_store_hint(&w->turn_ns, (uint32_t)((wf_load_hint(&w->turn_ns) + took) / 2));
	}
	w->seen_picks = picks;
	w->seen_picks_at = now;
}

/* When the slice began that is new since our last look: not before the turn, and now if that is not known. */
static int64_t slice_began_at(const struct wf_worker *w, int64_t looked_at, int64_t now)
{
	uint64_t began = wf_load_hint(&w->turn_began), cycles = wf_cpu_cycles();

	if (!began || cycles < began || cycles - began > wf_span_cycles(WF_SPAN_COUNTED))
		return now;
	return WF_MAX(now - wf_cycles_ns(cycles - began), looked_at);
}

/* Somebody waits for w, whose thread is not in a call. */
static void look_at_slice(struct wf_worker *w, struct look *l)
{
	int64_t slice = wf_worker_slice(w);

	if (l->now - w->seen_at >= slice - EARLY_NS(slice)) {
		preempt(w, WF_PREEMPT_SLICE);
		w->seen_at = l->due;
	}
	note_end(l, w->seen_at + slice, slice);
}

static void look_at_worker(struct wf_worker *w, struct look *l)
{
	struct wf_kthread *k = wf_load_acquire(&w->kthread);
	int64_t looked_at = w->seen_picks_at;
	uint32_t seq, calls;
	bool is_stuck;

	if (!k || !wf_worker_is_running(w))
		return;
	estimate_turn(w, l->now);
	seq = wf_load_relaxed(&w->slice_seq);
	calls = wf_load_relaxed(&w->calls);
	is_stuck = wf_load_relaxed(&k->insys) == 1;
	if (wf_is_shuffled() && is_waiting(w)) {
		uint32_t why = wf_shuffle_preempts();

		if (why && is_stuck)
			stuck_in_call(w, k, calls);
		else if (why)
			preempt(w, why);
	}
	if (is_stuck && calls == w->seen_calls && seq == w->seen_seq) {
		/* The second look in a row that finds the same call in progress. */
		stuck_in_call(w, k, calls);
		return;
	}
	if (seq != w->seen_seq)
		w->seen_at = slice_began_at(w, looked_at, l->now);
	l->has_calls |= is_stuck || calls != w->seen_calls;
	l->is_urgent |= is_stuck && (is_waiting(w) || !wf_load_relaxed(&wf_rt.nr_idle));
	w->seen_seq = seq;
	w->seen_calls = calls;
	if (!is_stuck && (is_waiting(w) || l->is_left))
		look_at_slice(w, l);
}

/*
 * A look together with the kernel's own tick costs no interrupt: 8 us instead of 20 to 50. So the next one is when the
 * kernel ticks, if that is not far off. The timer may be late by its slack, and not early.
 */
#define BEFORE_KERNEL_TICK_NS (20 * WF_US)

static int64_t with_kernel_tick(int64_t at, int64_t slice)
{
	int64_t tick = wf_rt.kernel_tick_ns, after;

	if (!tick)
		return at;
	after = (at + BEFORE_KERNEL_TICK_NS + tick - 1) / tick * tick - BEFORE_KERNEL_TICK_NS;
	if (after - at <= slice / 4)
		return after;
	return at - (after - tick) <= EARLY_NS(slice) ? after - tick : at;
}

/*
 * Some worker looks for events between its threads, more often than we do. A thread that we find instead comes through an inbox, and
 * with a further look at whether its worker goes on. It also takes back a wake() that found nobody, as that one's event is in
 * the same set. Should it poll no more, it did so long ago at our next look, and we poll.
 */
static bool is_anybody_polling(void)
{
	uint64_t cycles = wf_cpu_cycles();

	for (uint32_t i = 0; i < wf_rt.nr_workers; i++)
		if ((int64_t)(cycles - wf_load_hint(&wf_rt.workers[i].polled_at)) <
		    (int64_t)(2 * wf_span_cycles(WF_SPAN_POLL)))
			return true;
	return false;
}

/* When to look again at the latest. */
static int64_t next_look(const struct look *l)
{
	int64_t longest = LONGEST_TICK_NS;

	if (wf_is_shuffled())
		return l->now + wf_shuffle_tick_ns();
	if (l->is_urgent)
		return l->now + WF_MIN(RETAKE_TICK_NS, l->slice);
	if (l->has_calls || (!wf_load_seq_cst(&wf_rt.nr_idle) && wf_rt.io->has_waiters()))
		longest = BUSY_TICK_NS;
	/* A thread that comes to wait is not to wait longer because nobody did until then. */
	longest = WF_MIN(longest, l->slice);
	return with_kernel_tick(WF_MIN(l->due + longest, next_end(l)), l->slice);
}

/* Armed again so soon after it was disarmed that it had better not been. */
#define SOON_NS LONGEST_TICK_NS

static void notice_arming(int64_t now)
{
	if (wf_load_relaxed(&wf_rt.monitor_armed) && now - wf_rt.disarmed_at < SOON_NS)
		wf_rt.stays_armed_until = now + SOON_NS;
}

int64_t wf_monitor_tick(int64_t now)
{
	struct look look = { .now = now,
			     .due = now,
			     .first_end = WF_NEVER,
			     .last_end = WF_NEVER,
			     .is_left = wf_rescue_is_work_left(),
			     .slice = wf_rt.slice_ns };
	bool is_busy = false, is_queued = false;
	int64_t next = wf_load_relaxed(&wf_rt.monitor_until), woken = WF_NEVER, rescue;

	if (next < now && now - next <= EARLY_NS(wf_rt.slice_ns))
		look.due = next;
	wf_store_relaxed(&wf_rt.coarse_now, now);
	wf_rate_look(now, wf_cpu_cycles());
	wf_record_look();
	notice_arming(now);
	for (uint32_t i = 0; i < wf_rt.nr_workers; i++) {
		struct wf_worker *w = &wf_rt.workers[i];

		look_at_worker(w, &look);
		is_busy |= wf_worker_is_running(w);
		is_queued |= is_waiting(w);
	}
	wf_width_look(now);
	wf_poller_look(now); /* before we look for events: then nobody might wait */
	if (wf_load_seq_cst(&wf_rt.nr_lazy)) {
		is_busy = look.has_calls = true;
		look.is_urgent |= !wf_load_seq_cst(&wf_rt.nr_idle);
	}
	if (is_queued)
		wf_idle_wake();
	rescue = wf_rescue_look(now, is_queued);
	is_busy |= rescue != WF_NEVER;
	if (!wf_load_seq_cst(&wf_rt.nr_idle)) {
		(void)wf_wheel_expire(&wf_rt.wheel, now);
		/* A wake() that found its sleeper gone would suppress all others: who polls takes it back. */
		if (wf_rt.io->has_waiters() ? !is_anybody_polling()
					    : wf_load_relaxed(&wf_rt.nr_searching))
			wf_worker_pass_wake_on(wf_rt_poll(0));
	}
	if (!is_busy && !is_queued && now >= wf_rt.stays_armed_until) {
		/* Disarm, then look again: a worker that became busy meanwhile saw us armed. */
		wf_store_seq_cst(&wf_rt.monitor_armed, 0u);
		for (uint32_t i = 0; i < wf_rt.nr_workers; i++) {
			struct wf_kthread *k = wf_load_seq_cst(&wf_rt.workers[i].kthread);

			is_busy |= (k && wf_load_seq_cst(&k->cur) &&
				    !wf_load_seq_cst(&k->direct)) ||
				   is_waiting(&wf_rt.workers[i]);
		}
		is_busy |= wf_rescue_is_poller_missing();
		wf_rt.disarmed_at = now;
		if (!is_busy && wf_load_seq_cst(&wf_rt.nr_idle))
			return WF_NEVER;
		if (!is_busy) /* nobody sleeps in the poller: the timers are ours */
			return wf_load_seq_cst(&wf_rt.wheel.next);
		wf_store_seq_cst(&wf_rt.monitor_armed, 1u);
	}
	for (uint32_t i = 0; i < wf_rt.nr_workers; i++)
		if (wf_load_hint(&wf_rt.workers[i].wants_look))
			woken = WF_MIN(woken, look_for_woken(&wf_rt.workers[i], now));
	next = next_look(&look);
	if (!wf_load_seq_cst(&wf_rt.nr_idle))
		next = WF_MIN(next,
			      WF_MAX(wf_load_seq_cst(&wf_rt.wheel.next), now + WF_MONITOR_MIN_NS));
	return WF_MIN(WF_MIN(next, woken), rescue);
}
