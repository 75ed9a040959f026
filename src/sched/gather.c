// SPDX-License-Identifier: Apache-2.0
/* Contenders of a lock on one worker; see gather.h. */
#include "sched/gather.h"
#include "sched/park.h"
#include "sched/rate.h"
#include "sched/runtime.h"

#define STEPS_OF_A_BRIEF_WAIT 4

void wf_gather_waits(struct wf_gather *g)
{
	if (wf_rt.nr_workers > 1)
		g->waited_at = wf_cpu_cycles();
}

void wf_gather_missed(struct wf_gather *g)
{
	if (wf_rt.nr_workers > 1)
		wf_store_relaxed(&g->score,
				 wf_habit_rise(WF_HABIT_BRIEF_LOCK, wf_load_relaxed(&g->score), 1));
}

static void learn_from_wake(struct wf_gather *g)
{
	bool is_brief = wf_cpu_cycles() - g->waited_at < wf_span_cycles(WF_SPAN_BRIEF_LOCK);

	wf_store_relaxed(&g->score, is_brief ? wf_habit_rise(WF_HABIT_BRIEF_LOCK, g->score,
							     STEPS_OF_A_BRIEF_WAIT)
					     : wf_habit_fall(WF_HABIT_BRIEF_LOCK, g->score));
	g->waited_at = 0;
}

bool wf_gather_unpark(struct wf_gather *g, struct wf_thread *t)
{
	struct wf_worker *w = wf_load_relaxed(&wf_own_kthread()->worker), *home = g->home;

	if (g->waited_at)
		learn_from_wake(g);
	if (!w || t->bound || !wf_habit_holds(WF_HABIT_BRIEF_LOCK, g->score))
		return wf_unpark(t, WF_WAKE_EVENT);
	if (home && home != w && wf_worker_is_running(home))
		return wf_unpark_on(t, WF_WAKE_EVENT, home);
	wf_store_relaxed(&g->home, w);
	return wf_unpark_on(t, WF_WAKE_EVENT, w);
}

void wf_gather_join(struct wf_gather *g)
{
	struct wf_kthread *k = wf_own_kthread();
	struct wf_worker *home = wf_load_relaxed(&g->home);

	if (!wf_habit_holds(WF_HABIT_BRIEF_LOCK, wf_load_relaxed(&g->score)) || !home ||
	    home == k->worker || k->bound || !wf_worker_is_running(home))
		return;
	wf_store_relaxed(&k->cur->gathers, true);
	k->joins = home;
	WF_TRACE(k, WF_EV_YIELD, 0, 0);
	wf_worker_switch_away(WF_PREV_JOIN);
}
