// SPDX-License-Identifier: Apache-2.0
/*
 * When workers search, sleep and wake one another.
 *
 * A worker without work searches for a moment, then sleeps in the poller, where every sleeper waits for I/O,
 * for the next timer, and for wake().
 *
 * Invariant (no lost work): a submitter pushes, fences, then reads nr_idle; a sleeper raises nr_idle, fences,
 * then looks at every queue. One of the two sees the other. nr_searching suppresses further wake-ups while
 * one is on its way: the token travels with the wake() and is given up only before another look at all queues.
 * Work behind a worker that runs a thread may be left to it: that worker looks there before it sleeps, and whoever
 * left it looks again after a nap.
 */
#include "sched/idle.h"
#include "base/die.h"
#include "sched/clock.h"
#include "sched/direct.h"
#include "sched/inbox.h"
#include "sched/kick.h"
#include "sched/peer.h"
#include "sched/runtime.h"
#include "sched/timers.h"
#include "sched/width.h"
#include "sched/worker.h"

/* a few microseconds: waking another processor costs 10 or more on a virtual machine */
#define SEARCH_ROUNDS 4
#define PAUSES_PER_ROUND 40
/* about 20 us in all: what a wake-up would have taken, too */
#define PATIENT_ROUNDS 2
#define PAUSES_OF_PATIENCE 200

/* How long work that its own worker comes to soon may wait beside an idle one, should it not come soon after all. */
#define NAP_NS (250 * WF_US)

/* A single hand-off on w, whose waker usually parks at once: it belongs there. Racy reads of stable objects. */
static bool is_kept_handoff(struct wf_worker *w)
{
	struct wf_kthread *k = wf_load_relaxed(&w->kthread);
	struct wf_thread *waker = k ? wf_load_relaxed(&k->cur) : NULL;

	return wf_load_relaxed(&w->rq.handoff) && waker &&
	       wf_habit_holds(WF_HABIT_PARKS_SOON, wf_load_hint(&waker->parks_after_wake));
}

enum haul {
	HAUL_NOTHING,
	HAUL_WARM, /* what is there runs best where it is */
	HAUL_LEFT, /* what is there only the greedy take */
	HAUL_SOME
};

/* Of what waits at w, what self leaves to it for a while. A hint. */
static enum wf_leave leave_to(const struct wf_worker *w, const struct wf_worker *self)
{
	if (wf_worker_comes_soon(w))
		return WF_LEAVE_WARM;
	return wf_worker_is_running(w) && wf_peer_is_any(self) ? WF_LEAVE_BESIDE_PEER
							       : WF_LEAVE_NONE;
}

/* True: a thief that respects leave finds nothing to take at w. */
static bool is_all_left(const struct wf_worker *w, enum wf_leave leave, bool has_inbox)
{
	return leave == WF_LEAVE_WARM ||
	       (leave == WF_LEAVE_BESIDE_PEER && !has_inbox && wf_runq_is_beside_peers(&w->rq));
}

/*
 * Is there work that a sleeper must not sleep on? What its worker comes to soon, or what has its peers there, is left to
 * it: HAUL_WARM, sleep a nap only. Seen from nowhere (NULL) all work is work.
 */
static enum haul look_around(const struct wf_worker *self)
{
	enum haul haul = HAUL_NOTHING;

	for (uint32_t i = 0; i < wf_rt.nr_workers; i++) {
		struct wf_worker *w = &wf_rt.workers[i];
		uint32_t nr = wf_load_seq_cst(&w->rq.nr);
		bool has_inbox = wf_load_seq_cst(&w->inbox);

		if (!has_inbox && (!nr || (w != self && nr == 1 && is_kept_handoff(w))))
			continue;
		if (!self || w == self || !is_all_left(w, leave_to(w, self), has_inbox))
			return HAUL_SOME;
		haul = HAUL_WARM;
	}
	return haul;
}

bool wf_idle_is_work_around(const struct wf_worker *w)
{
	return look_around(w) != HAUL_NOTHING;
}

bool wf_idle_is_work_left(const struct wf_worker *w)
{
	return look_around(w) == HAUL_SOME;
}

bool wf_idle_is_anybody(void)
{
	return wf_load_relaxed(&wf_rt.nr_idle) || wf_load_relaxed(&wf_rt.nr_vacant) ||
	       wf_load_relaxed(&wf_rt.nr_direct);
}

void wf_idle_wake(void)
{
	for (;;) {
		uint32_t none = 0;
		struct wf_worker *w;

		if (!wf_load_seq_cst(&wf_rt.nr_idle) && !wf_load_seq_cst(&wf_rt.nr_vacant) &&
		    !wf_load_seq_cst(&wf_rt.nr_direct))
			return;
		if (wf_load_seq_cst(&wf_rt.nr_searching) || !wf_cas(&wf_rt.nr_searching, &none, 1u))
			return;
		if (wf_load_seq_cst(&wf_rt.nr_idle)) {
			wf_rt.io->wake();
			return;
		}
		if (wf_direct_wake())
			return;
		w = wf_rt_take_vacant();
		if (w && wf_rt_carry(w, true))
			return;
		if (w)
			wf_rt_make_vacant(w);
		wf_fetch_sub(&wf_rt.nr_searching, 1u);
		if (w && wf_has_own_state(wf_own_kthread())) {
			wf_store_seq_cst(&wf_rt.door_wakes, 1u);
			wf_kick(wf_rt.door);
			return;
		}
		/* A submitter of work while we held the token relied on us, and may have slept since. */
		if (look_around(NULL) == HAUL_NOTHING || (w && !wf_load_seq_cst(&wf_rt.nr_idle)))
			return;
	}
}

static void stop_searching(struct wf_kthread *k)
{
	if (!k->is_searching)
		return;
	k->is_searching = false;
	/* The last searcher found work: there may be more, and submitters relied on it. */
	if (wf_fetch_sub(&wf_rt.nr_searching, 1u) == 1)
		wf_idle_wake();
}

static void take_inbox_of(struct wf_worker *w, struct wf_worker *victim)
{
	struct wf_thread *t = wf_inbox_take(victim);

	while (t) {
		struct wf_thread *next = t->next;

		wf_worker_push(w, t, WF_PLACE_TAIL);
		t = next;
	}
}

static enum haul steal_from(struct wf_kthread *k, struct wf_worker *victim, enum wf_greed greed,
			    bool takes_warm)
{
	struct wf_worker *w = k->worker;
	enum haul haul = HAUL_NOTHING;
	enum wf_leave leave = takes_warm ? WF_LEAVE_NONE : leave_to(victim, w);

	if (wf_runq_nr(&victim->rq)) {
		uint32_t got = wf_runq_steal(&w->rq, &victim->rq, greed, victim, leave);

		if (got) {
			k->count.steals += got;
			wf_store_hint(&w->hauls, w->hauls + 1);
			WF_TRACE(k, WF_EV_STEAL, victim->index, got);
			return HAUL_SOME;
		}
		haul = is_kept_handoff(victim)             ? HAUL_NOTHING
		       : is_all_left(victim, leave, false) ? HAUL_WARM
							   : HAUL_LEFT;
	}
	if (!wf_load_relaxed(&victim->inbox))
		return haul;
	if (greed != WF_GREED_ALL && wf_load_hint(&victim->inbox_gathers))
		return HAUL_LEFT;
	if (leave == WF_LEAVE_WARM)
		return WF_MAX(haul, HAUL_WARM);
	take_inbox_of(w, victim);
	return HAUL_SOME;
}

static enum haul steal(struct wf_kthread *k, enum wf_greed greed, bool takes_warm)
{
	struct wf_worker *w = k->worker;
	uint32_t n = wf_rt.nr_workers, first;
	enum haul best = HAUL_NOTHING;

	w->rng = w->rng * 6364136223846793005ull + 1442695040888963407ull;
	first = (uint32_t)(w->rng >> 33) % n;
	for (uint32_t i = 0; i < n && best != HAUL_SOME; i++) {
		struct wf_worker *victim = &wf_rt.workers[(first + i) % n];

		if (victim != w)
			best = WF_MAX(best, steal_from(k, victim, greed, takes_warm));
	}
	return best;
}

void wf_idle_take_over(struct wf_kthread *k)
{
	for (uint32_t i = 0; k->worker && i < wf_rt.nr_workers; i++) {
		struct wf_worker *victim = &wf_rt.workers[i];

		if (victim != k->worker && !wf_load_acquire(&victim->kthread))
			(void)steal_from(k, victim, WF_GREED_ALL, true);
	}
}

/* Where it did not pay, one search in so many lasts all the same: a program's habits change. */
#define SEARCHES_PER_TRIAL 16

/* Work that only came while we lingered: then lingering is worth the processor time that it takes. */
static void learn_from_search(struct wf_worker *w, bool has_found)
{
	w->search_pays = (uint8_t)(has_found
					   ? wf_habit_rise(WF_HABIT_SEARCH_PAYS, w->search_pays, 1)
					   : wf_habit_fall(WF_HABIT_SEARCH_PAYS, w->search_pays));
}

/*
 * Look for work elsewhere, for a moment; for a longer one if there is some that is better left alone. A
 * worker whose only thread waits for I/O finds nothing, ever: it goes to sleep after the first look.
 */
static void search(struct wf_kthread *k, bool takes_warm)
{
	struct wf_worker *w = k->worker;
	bool lingers = wf_habit_holds(WF_HABIT_SEARCH_PAYS, w->search_pays) ||
		       !(++w->searches % SEARCHES_PER_TRIAL);

	for (int round = 1;; round++) {
		bool is_patient = round >= SEARCH_ROUNDS,
		     is_last = round == SEARCH_ROUNDS + PATIENT_ROUNDS;
		enum haul haul = steal(k,
				       is_last      ? WF_GREED_ALL
				       : is_patient ? WF_GREED_HANDOFF
						    : WF_GREED_NONE,
				       takes_warm);

		if (round > 1 && (haul == HAUL_SOME || is_patient))
			learn_from_search(w, haul == HAUL_SOME);
		if (haul == HAUL_SOME || is_last || ((is_patient || !lingers) && haul <= HAUL_WARM))
			return;
		for (int i = 0; i < (is_patient ? PAUSES_OF_PATIENCE : PAUSES_PER_ROUND); i++)
			wf_cpu_pause();
	}
}

/* True after a whole nap beside warm work. */
static bool sleep_in_poller(struct wf_kthread *k, struct wf_worker *w)
{
	uint32_t nr = wf_fetch_add(&wf_rt.nr_idle, 1u);
	bool woken = false, has_napped = false;
	enum haul haul;

	/* our entry before our look at the queues; pairs with submitters */
	wf_fence_seq_cst(&wf_rt.nr_idle);
	haul = look_around(w);
	if (haul != HAUL_SOME) {
		int64_t timeout = wf_timers_sleep(), began = wf_now(), now;

		if (haul == HAUL_WARM && (timeout < 0 || timeout > NAP_NS))
			timeout = NAP_NS;
		k->count.idles++;
		WF_TRACE(k, WF_EV_IDLE, nr, 0);
		wf_worker_sleeps(w, began);
		woken = wf_rt_poll(timeout);
		wf_store_hint(&w->has_idled, true);
		/* Nobody ticked while everybody slept: what runs next is not charged for that time. */
		now = wf_now();
		wf_worker_wakes(w, now);
		wf_store_relaxed(&wf_rt.coarse_now, now);
		if (now - began >= NAP_NS)
			wf_peer_forget(w);
		has_napped = haul == HAUL_WARM && now - began >= NAP_NS;
	}
	wf_fetch_sub(&wf_rt.nr_idle, 1u);
	if (woken) {
		if (k->is_searching)
			wf_fetch_sub(&wf_rt.nr_searching, 1u);
		k->is_searching = true;
	}
	return has_napped;
}

/* There will be no work any more. */
static void give_worker_up(struct wf_kthread *k)
{
	wf_store_release(&k->worker->kthread, (struct wf_kthread *)NULL);
	wf_store_release(&k->worker, (struct wf_worker *)NULL);
}

struct wf_thread *wf_idle_find_work(struct wf_kthread *k)
{
	struct wf_worker *w = k->worker;
	bool has_napped = false;

	for (;;) {
		struct wf_thread *t = wf_worker_pick(w);

		if (!t) {
			wf_timers_look();
			if (!k->is_searching && wf_rt.nr_workers > 1) {
				k->is_searching = true;
				wf_fetch_add(&wf_rt.nr_searching, 1u);
			}
			if (k->is_searching)
				search(k, has_napped);
			t = wf_worker_pick(w);
		}
		if (t) {
			stop_searching(k);
			wf_timers_awake();
			wf_direct_see_to_poller();
			return t;
		}
		/* Give the token up before the look at all queues in sleep_in_poller(). */
		if (k->is_searching) {
			k->is_searching = false;
			wf_fetch_sub(&wf_rt.nr_searching, 1u);
		}
		if (WF_UNLIKELY(wf_load_relaxed(&wf_rt.is_stopping))) {
			give_worker_up(k);
			return NULL;
		}
		has_napped = !wf_width_rest(k) && sleep_in_poller(k, w);
	}
}
