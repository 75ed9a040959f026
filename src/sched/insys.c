// SPDX-License-Identifier: Apache-2.0
/*
 * Calls that may block in the kernel, and what becomes of the worker meanwhile; see worker.h.
 *
 * The word insys decides between us and the monitor: our 1 -> 0 at return and its 1 -> 2 are both CAS, so exactly one
 * of them keeps the worker.
 *
 * A kernel thread that has handed its worker on is not disturbed for that worker's sake any more: a waiter for a futex that the kernel has
 * moved to another one would, interrupted, wait for the first again. A kicker for the CPU's sake counts itself, looks whether k has
 * the worker still, kicks only then, and counts itself out; k gives the worker away, then waits until nobody is counted,
 * and after that until no kick is on its way. Both in sequential order: either k is seen without the worker, or it sees who
 * is about to kick it. Nobody takes back what another one has begun.
 */
#include "sched/insys.h"
#include "sched/kick.h"
#include "sched/preempt.h"
#include "sched/runtime.h"
#include "sched/shuffle.h"
#include "sched/worker.h"

/* The worker of k, which is about to wait, goes on without it. */
static void hand_on(struct wf_kthread *k, struct wf_worker *w, enum wf_handoff why)
{
	wf_store_release(&k->insys, 2u);
	wf_step();
	wf_store_seq_cst(&k->worker, (struct wf_worker *)NULL);
	k->count.handoffs++;
	WF_TRACE(k, WF_EV_HANDOFF, w->index, why);
	wf_rt_make_vacant(w);
	wf_preempt_settle(k);
}

void wf_call_enter(bool certain)
{
	struct wf_kthread *k = wf_own_kthread();
	struct wf_worker *w = k->worker;

	if (WF_UNLIKELY(!w)) /* bound: nobody waits for its kernel thread */
		return;
	wf_store_relaxed(&w->calls, w->calls + 1);
	if (!certain || wf_rt.keeps_worker) {
		wf_store_release(&k->insys, 1u);
		return;
	}
	hand_on(k, w, WF_HANDOFF_CERTAIN);
}

void wf_call_enter_unknown(void)
{
	struct wf_kthread *k = wf_own_kthread();
	struct wf_worker *w = k->worker;

	if (!w || wf_rt.keeps_worker || (!wf_runq_nr(&w->rq) && !wf_load_relaxed(&w->inbox))) {
		wf_call_enter(false);
		return;
	}
	wf_store_relaxed(&w->calls, w->calls + 1);
	hand_on(k, w, WF_HANDOFF_UNKNOWN);
}

void wf_call_enter_lazy(void)
{
	struct wf_kthread *k = wf_own_kthread();
	struct wf_worker *w = k->worker;

	if (WF_UNLIKELY(!w)) /* bound */
		return;
	if (wf_rt.keeps_worker) {
		wf_call_enter(false);
		return;
	}
	wf_store_relaxed(&w->calls, w->calls + 1);
	k->is_lazy = true;
	wf_fetch_add(&wf_rt.nr_lazy, 1u);
	wf_store_release(&k->insys, 2u);
	wf_store_release(&k->worker, (struct wf_worker *)NULL);
	k->count.handoffs++;
	WF_TRACE(k, WF_EV_HANDOFF, w->index, WF_HANDOFF_LAZY);
	wf_rt_leave_vacant(w);
}

bool wf_call_retake(struct wf_worker *w)
{
	struct wf_kthread *k = wf_load_acquire(&w->kthread);
	uint32_t one = 1;

	if (!k || wf_rt.keeps_worker || wf_load_acquire(&k->worker) != w ||
	    !wf_cas(&k->insys, &one, 2u))
		return false;
	wf_step();
	/* Only now does k's worker stay what it is: between the look and the CAS, k may have changed it. */
	w = wf_load_acquire(&k->worker);
	/* k's thread waits until that worker is gone: it says nothing of what it does next before this is said */
	WF_TRACE(wf_own_kthread(), WF_EV_HANDOFF, w->index, WF_HANDOFF_MONITOR);
	wf_store_release(&k->worker, (struct wf_worker *)NULL);
	wf_rt_make_vacant(w);
	return true;
}

void wf_call_leave(void)
{
	struct wf_kthread *k = wf_own_kthread();
	uint32_t one = 1;

	if (WF_UNLIKELY(k->bound) || wf_cas(&k->insys, &one, 0u))
		return;
	wf_step();
	/* Taken. The monitor clears k->worker right after its CAS: wait for that, it is two instructions away. */
	for (uint32_t round = 0; wf_load_acquire(&k->worker); round++)
		sys_relax(round);
	wf_store_release(&k->insys, 0u);
	if (k->is_lazy) {
		k->is_lazy = false;
		wf_fetch_sub(&wf_rt.nr_lazy, 1u);
	}
	wf_worker_go_on();
}

void wf_call_break(struct wf_thread *t)
{
	struct wf_kthread *k = wf_load_acquire(&t->kthread);

	/* Looked at last before the call, and by the kick inside of it; see gate.S. */
	(void)wf_fetch_or(&t->attention, WF_ATT_RESCHED);
	if (k)
		wf_kick(k);
}
