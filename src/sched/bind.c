// SPDX-License-Identifier: Apache-2.0
/*
 * A bound thread runs on one kernel thread only, and that one runs nothing else.
 *
 * Called by: linux/bind.c, which knows for what. Everything else stays as it is: the thread parks and is woken like
 * any other, its calls are answered, its signals come through the door. Its kernel thread carries no worker,
 * like one whose worker was taken during a call; while the thread is parked it sleeps on a word of its own, with
 * the thread's deadline as its time-out, so that a bound thread depends on no other to wake up in time.
 *
 * Invariants: t->bound is changed by t itself only, while it runs, or before it first runs. A kernel thread with
 * state of its own makes no kernel thread that carries a worker: the door is asked instead (wf_rt_carry()). The last
 * kernel thread that could run others is bound by no call: that call fails with EAGAIN (wf_rt.nr_unbound).
 */
#include "sched/bind.h"
#include "arch/arch.h"
#include "sched/account.h"
#include "sched/idle.h"
#include "sched/park.h"
#include "sched/runtime.h"
#include "sched/staff.h"

void wf_bind_self(void)
{
	struct wf_kthread *k = wf_own_kthread();
	struct wf_worker *w = k->worker;
	struct wf_thread *self = k->cur;

	if (self->bound)
		return;
	wf_account_bind(k, self);
	WF_TRACE(k, WF_EV_BIND, w->index, 0);
	wf_fetch_sub(&wf_rt.nr_unbound, 1u); /* two that bind at once do not both take the last */
	wf_store_release(&k->worker, (struct wf_worker *)NULL);
	wf_rt_make_vacant(w); /* may make a carrier: this kernel thread is still like all others */
	wf_store_relaxed(&k->bound_is_ready, 0u);
	wf_store_release(&k->bound, self);
	wf_store_release(&self->bound, k);
}

/*
 * Threads that bind at the same moment may together have taken all that there were, and each goes back. One more for each
 * who tried, and sooner or later it is enough for all; only who cannot make one gives up.
 */
bool wf_bind_try(void)
{
	if (WF_UNLIKELY(wf_load_seq_cst(&wf_rt.nr_unbound) <= 1))
		(void)wf_staff_spawn_spare();
	for (;;) {
		wf_bind_self();
		if (WF_LIKELY(wf_load_seq_cst(&wf_rt.nr_unbound) > 0))
			return true;
		wf_bind_end();
		if (wf_staff_spawn_spare() < 0)
			return false;
	}
}

void wf_bind_end(void)
{
	struct wf_kthread *k = wf_own_kthread();
	struct wf_thread *self = k->cur;

	if (!self->bound)
		return;
	wf_account_unbind(k, self);
	wf_store_release(&self->bound, (struct wf_kthread *)NULL);
	wf_store_release(&k->bound, (struct wf_thread *)NULL);
	wf_fetch_add(&wf_rt.nr_unbound, 1u);
	wf_worker_go_on();
}

long wf_bind_new(struct wf_thread *t)
{
	struct wf_kthread *k = wf_staff_spawn_bound(t);

	return k ? 0 : -11 /* EAGAIN */;
}

void wf_bind_ready(struct wf_thread *t)
{
	struct wf_kthread *k = wf_load_acquire(&t->bound), *own = wf_own_kthread();

	wf_store_seq_cst(&k->bound_is_ready, 1u);
	if (k == own)
		return;
	if (own->holds_wakes && own->nr_woken < ARRAY_LEN(own->woken))
		own->woken[own->nr_woken++] = k;
	else
		(void)sys_futex_wake(&k->bound_is_ready, 1);
}

bool wf_bind_unpark_held(struct wf_thread *t, enum wf_reason reason)
{
	struct wf_kthread *own = wf_own_kthread();
	bool won;

	own->holds_wakes = true;
	won = wf_unpark(t, reason);
	own->holds_wakes = false;
	return won;
}

/* Kernel threads are never unmapped: a wake-up that comes too late wakes nobody who does not look again. */
void wf_bind_wake_slow(struct wf_kthread *k)
{
	for (uint32_t i = 0; i < k->nr_woken; i++)
		(void)sys_futex_wake(&k->woken[i]->bound_is_ready, 1);
	k->nr_woken = 0;
}

/* Descriptors that the thread waits for are in the poller: somebody must sleep there. */
static void see_to_a_poller(void)
{
	wf_fence_seq_cst(&wf_rt.nr_idle);
	if (!wf_load_seq_cst(&wf_rt.nr_idle) && wf_idle_is_anybody() && wf_rt.io->has_waiters())
		wf_idle_wake();
}

void wf_bind_wait(struct wf_kthread *k)
{
	if (!wf_load_seq_cst(&k->bound_is_ready))
		see_to_a_poller();
	while (!wf_load_seq_cst(&k->bound_is_ready)) {
		int64_t left = -1;

		if (k->bound_until != WF_NEVER) {
			left = k->bound_until - sys_now();
			if (left <= 0) {
				k->bound_until = WF_NEVER;
				/* Lost to another waker: that one has set the word, or is about to. */
				(void)wf_unpark(k->bound, WF_WAKE_TIMEOUT);
				continue;
			}
		}
		(void)sys_futex_wait(&k->bound_is_ready, 0, left);
	}
	wf_store_relaxed(&k->bound_is_ready, 0u);
}

void wf_bind_exit(struct wf_kthread *k)
{
	wf_staff_end(k);
	for (;;)
		(void)sys1(__NR_exit, 0); /* the kernel clears k->tid: then k may be used again */
}
