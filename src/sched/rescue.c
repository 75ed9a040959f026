// SPDX-License-Identifier: Apache-2.0
/* The way on where there are too few kernel threads; see rescue.h. */
#include "sched/rescue.h"
#include "sched/insys.h"
#include "sched/monitor.h"
#include "sched/park.h"
#include "sched/runtime.h"
#include "sched/worker.h"

#define TURN_NS WF_MS
#define POLL_NS (5 * WF_MS)

void wf_rescue_note(long error)
{
	int32_t none = 0;

	(void)wf_cas(&wf_rt.refusal, &none, (int32_t)error);
	/* The monitor tries again, as long as there is work. */
	wf_monitor_arm();
}

/*
 * The thread whose call on k may be ended, or NULL. Seen from outside: a guess, which may be late. To end another call of that thread
 * costs that call, which is made again.
 */
static struct wf_thread *may_be_ended(const struct wf_kthread *k)
{
	struct wf_thread *t = wf_load_relaxed(&k->cur);

	return t && !wf_load_relaxed(&k->bound) && wf_load_acquire(&k->insys) == 2 &&
			       wf_load_relaxed(&t->repeats_call)
		       ? t
		       : NULL;
}

static bool end_a_call(void)
{
	uint32_t nr = wf_load_acquire(&wf_rt.nr_kthreads);

	for (uint32_t i = 0; i < nr; i++) {
		uint32_t at = (wf_rt.rescue_turn + i) % nr;
		struct wf_thread *t = may_be_ended(wf_load_acquire(&wf_rt.kthreads[at]));

		if (!t)
			continue;
		wf_rt.rescue_turn = at + 1;
		wf_call_break(t);
		return true;
	}
	return false;
}

bool wf_rescue_is_work_left(void)
{
	if (WF_LIKELY(!wf_load_relaxed(&wf_rt.refusal)))
		return false;
	for (uint32_t i = 0; i < wf_rt.nr_workers; i++) {
		const struct wf_worker *w = &wf_rt.workers[i];

		if (!wf_load_acquire(&w->kthread) &&
		    (wf_runq_nr(&w->rq) || wf_load_relaxed(&w->inbox)))
			return true;
	}
	return false;
}

/* Those who left it for a disk are back soon. */
static bool is_nobody_left(void)
{
	return wf_load_relaxed(&wf_rt.refusal) &&
	       wf_load_seq_cst(&wf_rt.nr_vacant) == wf_rt.nr_workers &&
	       !wf_load_seq_cst(&wf_rt.nr_lazy);
}

bool wf_rescue_is_poller_missing(void)
{
	return WF_UNLIKELY(is_nobody_left()) && wf_rt.io->has_waiters();
}

int64_t wf_rescue_look(int64_t now, bool is_queued)
{
	int32_t refusal = wf_load_relaxed(&wf_rt.refusal);

	if (WF_UNLIKELY(wf_load_hint(&wf_trace.nr_lacking)) && !wf_rt.is_lack_told) {
		wf_rt.is_lack_told = true;
		wf_rt.hooks->lacks_rings();
	}
	if (WF_LIKELY(!refusal))
		return WF_NEVER;
	if (!wf_rt.is_refusal_told) {
		wf_rt.is_refusal_told = true;
		wf_rt.hooks->refused_kthread(refusal);
	}
	if (!is_nobody_left())
		return WF_NEVER;
	if (is_queued) {
		if (!end_a_call())
			wf_rt.hooks->stranded();
		return now + TURN_NS;
	}
	return wf_rt.io->has_waiters() ? now + POLL_NS : WF_NEVER;
}

void wf_rescue_let_others_run(void)
{
	struct wf_thread *self = wf_self();

	if (WF_LIKELY(!wf_load_relaxed(&wf_rt.refusal)) ||
	    !(wf_load_relaxed(&self->attention) & WF_ATT_RESCHED))
		return;
	(void)wf_fetch_and(&self->attention, ~WF_ATT_RESCHED);
	wf_yield(); /* also to those whom that takes over */
}
