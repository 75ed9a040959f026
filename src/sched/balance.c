// SPDX-License-Identifier: Apache-2.0
/*
 * Threads that compute are spread over the workers, and go round.
 *
 * Called by: preempt.c and park.c, where a thread leaves that others may have waited for.
 *
 * Workers take from one another only when they have nothing to do: while all compute, three threads on one and one on
 * another would stay like that for ever. So a thread whose slice is over goes to a worker with fewer. When that is one
 * fewer, the rest of a division, another one comes back soon: all workers together are as one queue, and everybody gets
 * as much. Letting each stay for two slices or more makes some of them fall into step (tests/unit/balance.c): with five
 * threads on two workers two had a quarter more than the others. Moving costs caches, some 100 us at most. Where all queues
 * are as long somebody goes, too, but seldom: the kernel may give one of our kernel threads less of a processor than
 * another, when other programs run.
 *
 * Threads that wait and are woken use no whole slices: they stay where they are, but for one that gives way in the middle
 * of its slice and would leave two more behind than there are elsewhere, unless its peer is here and
 * others are there.
 */
#include "sched/balance.h"
#include "sched/peer.h"
#include "sched/runtime.h"

/* A racy guess, as all of this. */
static uint32_t load_of(const struct wf_worker *w)
{
	return wf_runq_nr(&w->rq) + (wf_load_relaxed(&w->inbox) != NULL) + 1;
}

static bool is_busy(const struct wf_worker *w)
{
	struct wf_kthread *k = wf_load_acquire(&w->kthread);

	return k && wf_load_relaxed(&k->cur) && !wf_load_relaxed(&k->insys) &&
	       !wf_load_relaxed(&k->direct);
}

/* The busy worker with the fewest, or NULL; from the next on, so that those alike get as many. */
static struct wf_worker *least_loaded(const struct wf_worker *self, uint32_t *out_load)
{
	struct wf_worker *best = NULL;

	for (uint32_t i = 1; i < wf_rt.nr_workers; i++) {
		struct wf_worker *w = &wf_rt.workers[(self->index + i) % wf_rt.nr_workers];

		if (is_busy(w) && (!best || load_of(w) < *out_load)) {
			best = w;
			*out_load = load_of(w);
		}
	}
	return best;
}

enum wf_prev_action wf_balance_leave(struct wf_kthread *k, enum wf_prev_action action)
{
	struct wf_thread *self = k->cur;
	uint32_t mine, least = 0;
	struct wf_worker *to;

	if (wf_rt.nr_workers == 1)
		return action;
	/* The thread stays if all that are queued here have a lower weight: its leaving would help only them. */
	if (WF_UNLIKELY(wf_load_relaxed(&wf_rt.has_levels)) &&
	    !wf_runq_has_up_to(&k->worker->rq, wf_load_relaxed(&self->level)))
		return action;
	mine = load_of(k->worker);
	to = least_loaded(k->worker, &least);
	if (self->slice_left > 0) {
		if (!to || least + 2 > mine ||
		    (wf_thread_is_beside_peer(self) && wf_peer_is_any(to)))
			return action;
	} else {
		self->slices_here = wf_habit_rise(WF_HABIT_STAYED, self->slices_here, 1) & 15u;
		if (!to || least > mine ||
		    (least == mine && !wf_habit_holds(WF_HABIT_STAYED, self->slices_here)))
			return action;
	}
	self->slices_here = wf_habit_fall(WF_HABIT_STAYED, self->slices_here) & 15u;
	k->joins = to;
	return WF_PREV_JOIN;
}
