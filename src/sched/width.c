// SPDX-License-Identifier: Apache-2.0
/* Wide or narrow; see width.h. */
#include "sched/width.h"
#include "sched/clock.h"
#include "sched/direct.h"
#include "sched/idle.h"
#include "sched/runtime.h"
#include "sched/shuffle.h"

/* --- to rest --- */

static bool is_another_awake(const struct wf_worker *self)
{
	for (uint32_t i = 0; i < wf_rt.nr_workers; i++) {
		const struct wf_worker *w = &wf_rt.workers[i];

		if (w != self && wf_load_seq_cst(&w->kthread) && !wf_load_seq_cst(&w->rests))
			return true;
	}
	return false;
}

static bool may_rest(const struct wf_worker *w)
{
	return wf_load_seq_cst(&wf_rt.width.is_narrow) && !wf_load_seq_cst(&w->inbox);
}

bool wf_width_rest(struct wf_kthread *k)
{
	struct wf_worker *w = k->worker;
	bool has_rested = false;

	if (!wf_load_relaxed(&wf_rt.width.is_narrow))
		return false;
	wf_store_relaxed(&w->rests, 1u);
	/* our entry before our look at all queues and at the others; pairs with submitters, and with others that come to rest */
	wf_fence_seq_cst(&w->rests);
	if (is_another_awake(w) && !wf_idle_is_work_left(w)) {
		wf_direct_see_to_poller();
		k->count.rests++;
		WF_TRACE(k, WF_EV_REST, 0, 0);
		wf_worker_sleeps(w, wf_now());
		while (wf_load_seq_cst(&w->rests) && may_rest(w)) {
			(void)sys_futex_wait(&w->rests, 1u, -1);
			has_rested = true;
		}
		wf_worker_wakes(w, wf_now());
	}
	wf_store_seq_cst(&w->rests, 0u);
	return has_rested;
}

void wf_width_rouse(struct wf_worker *w)
{
	if (wf_exchange_seq_cst(&w->rests, 0u))
		(void)sys_futex_wake(&w->rests, 1);
}

void wf_width_set(bool is_narrow)
{
	if (is_narrow == (wf_load_relaxed(&wf_rt.width.is_narrow) != 0))
		return;
	wf_store_seq_cst(&wf_rt.width.is_narrow, (uint32_t)is_narrow);
	if (is_narrow)
		return;
	for (uint32_t i = 0; i < wf_rt.nr_workers; i++)
		wf_width_rouse(&wf_rt.workers[i]);
}

/* --- to find out --- */

/* So long the program is looked at before it is tried, and so long a try of one kind lasts at least. */
#define LOOKS_NS (100 * WF_MS)
#define WINDOW_NS (5 * WF_MS)
/* Per second: less is not worth a try, or says nothing. */
#define SERVED_MIN 2000
#define HAULS_MIN 500
#define NR_WINDOWS 8u /* narrow, wide, narrow ... */
/* By so much, per cent, narrow must be better to be chosen, and to be kept. */
#define BETTER_BY 15u
#define STILL_BETTER_BY 5u
/* After the first two: that much worse, per cent, and it is not worth finding out more. */
#define MUCH_WORSE_BY 20u
/* Until the next trial, each time twice as long; first and last. */
#define PAUSE_MIN_NS WF_SEC
#define PAUSE_MAX_NS (64 * WF_SEC)
#define STAY_MAX_NS (8 * WF_SEC)
/* Turns that last so long at so many looks in a row: it computes, and needs processors. */
#define LONG_NS (2 * WF_MS)
#define LONG_TURNS 3u
/* Nothing ran for so long: what was learnt is of another time. */
#define FORGETS_NS (100 * WF_MS)

struct sums {
	uint32_t served, hauls; /* they go round: differences count */
	bool is_long;           /* some thread has, or threads have in turn, a worker for long */
};

static struct sums add_up(void)
{
	struct sums s = { 0 };

	for (uint32_t i = 0; i < wf_rt.nr_workers; i++) {
		struct wf_worker *w = &wf_rt.workers[i];

		s.served += wf_load_relaxed(&w->served);
		s.hauls += wf_load_relaxed(&w->hauls);
		s.is_long |= wf_worker_is_running(w) && w->seen_turn_ns >= LONG_NS;
	}
	return s;
}

static void begin_window(struct wf_width *d, const struct sums *s, int64_t now)
{
	d->began = now;
	d->served = s->served;
	d->hauls = s->hauls;
}

static uint64_t per_second(uint64_t n, int64_t took)
{
	return n * (uint64_t)WF_SEC / (uint64_t)took;
}

static void stay_wide(struct wf_width *d, int64_t now, int64_t pause)
{
	wf_width_set(false);
	d->phase = WF_WIDTH_WIDE;
	d->until = now + pause;
	d->nr_long = 0;
}

static void give_up(struct wf_width *d, int64_t now)
{
	d->pause = WF_MIN(WF_MAX(2 * d->pause, PAUSE_MIN_NS), PAUSE_MAX_NS);
	d->stay = 0;
	stay_wide(d, now, d->pause);
}

static void begin_trial(struct wf_width *d)
{
	d->phase = WF_WIDTH_TRIAL;
	d->window = 0;
	d->wins = 0;
	for (int i = 0; i < 2; i++) {
		d->sum[i] = 0;
		d->took[i] = 0;
	}
	wf_width_set(true);
}

static bool is_worth_a_trial(const struct wf_width *d, const struct sums *s, int64_t took)
{
	return !s->is_long && per_second(s->served - d->served, took) >= SERVED_MIN &&
	       per_second(s->hauls - d->hauls, took) >= HAULS_MIN;
}

/* Narrow serves by so many per cent more. */
static bool is_better_by(uint64_t narrow, uint64_t wide, uint64_t percent)
{
	return 100 * narrow >= (100 + percent) * wide;
}

static void end_trial(struct wf_width *d, int64_t now)
{
	uint64_t wide = per_second(d->sum[0], d->took[0]),
		 narrow = per_second(d->sum[1], d->took[1]);

	if (d->wins <= NR_WINDOWS / 4 ||
	    !is_better_by(narrow, wide, d->stay ? STILL_BETTER_BY : BETTER_BY)) {
		give_up(d, now);
		return;
	}
	d->phase = WF_WIDTH_NARROW;
	d->pause = 0;
	d->stay = WF_MIN(WF_MAX(2 * d->stay, PAUSE_MIN_NS), STAY_MAX_NS);
	d->until = now + d->stay;
	wf_width_set(true);
}

static void end_window(struct wf_width *d, const struct sums *s, int64_t now)
{
	bool was_narrow = !(d->window & 1);
	int64_t took = now - d->began;
	uint32_t served = s->served - d->served;
	uint64_t rate = per_second(served, took);

	d->sum[was_narrow] += served;
	d->took[was_narrow] += took;
	if (was_narrow) {
		d->narrow_rate = rate;
	} else {
		d->wins += d->narrow_rate > rate;
		if (d->window == 1 && is_better_by(rate, d->narrow_rate, MUCH_WORSE_BY)) {
			give_up(d, now);
			return;
		}
	}
	if (++d->window == NR_WINDOWS)
		end_trial(d, now);
	else
		wf_width_set(!(d->window & 1));
}

/* It is no longer what it was tried as. */
static bool has_changed(struct wf_width *d, const struct sums *s)
{
	d->nr_long = s->is_long ? d->nr_long + 1 : 0;
	return d->nr_long == LONG_TURNS;
}

void wf_width_look(int64_t now)
{
	struct wf_width *d = &wf_rt.width;
	int64_t slept = now - d->looked_at;
	struct sums s;

	if (wf_rt.nr_workers == 1)
		return;
	if (wf_is_shuffled()) {
		wf_width_set(wf_shuffle_below(2));
		return;
	}
	s = add_up();
	d->looked_at = now;
	if (slept >= FORGETS_NS) {
		stay_wide(d, now, 0);
		begin_window(d, &s, now);
		return;
	}
	if (d->phase != WF_WIDTH_WIDE && has_changed(d, &s)) {
		stay_wide(d, now, 0);
		begin_window(d, &s, now);
		return;
	}
	if (now - d->began < (d->phase == WF_WIDTH_TRIAL ? WINDOW_NS : LOOKS_NS))
		return;
	if (d->phase == WF_WIDTH_TRIAL)
		end_window(d, &s, now);
	else if (now >= d->until &&
		 (d->phase == WF_WIDTH_NARROW || is_worth_a_trial(d, &s, now - d->began)))
		begin_trial(d);
	begin_window(d, &s, now);
}
