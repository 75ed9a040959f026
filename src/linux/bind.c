// SPDX-License-Identifier: Apache-2.0
/*
 * Binding: Linux keeps much per kernel thread (filters, namespaces, capabilities, real-time policies, ...).
 * A thread that sets any of it for itself gets a kernel thread of its own, where the kernel keeps it; so do
 * the threads that it makes, which inherit it there. See sched/bind.c for how such a thread runs.
 */
#include "linux/bind.h"
#include "linux/comm.h"
#include "linux/deathsig.h"
#include "linux/sigwant.h"

#define SELF 0
#define IOPRIO_WHO_PROCESS 1
#define WAIT_ROUNDS 500 /* of sys_relax(): some 15 ms, if the other needs a processor first */

/* The kernel thread must have these for the thread to be as it was told. */
static void apply(const struct lx_thread *self)
{
	uint32_t binds = wf_load_relaxed(&self->binds);

	lx_comm_lend(self);
	if (binds & LX_BIND_AFFINITY)
		(void)sys3(__NR_sched_setaffinity, SELF, sizeof(self->affinity), self->affinity);
	if (binds & LX_BIND_POLICY)
		(void)sys3(__NR_sched_setscheduler, SELF, self->policy, &self->priority);
	if (wf_load_acquire(&self->has_ioprio))
		(void)sys3(__NR_ioprio_set, IOPRIO_WHO_PROCESS, SELF, self->ioprio);
	if (self->nice != lx.base_nice)
		(void)sys3(__NR_setpriority, 0, SELF, self->nice);
	lx_deathsig_to_own(self);
}

void lx_bind_rethink(struct lx_thread *self, bool may_end)
{
	if (wf_load_acquire(&self->binds)) {
		if (!wf_is_bound(&self->base)) {
			wf_bind_self();
			apply(self);
		}
	} else if (wf_is_bound(&self->base)) {
		if (may_end) {
			lx_deathsig_to_door(self);
			wf_bind_end();
		} else {
			(void)wf_fetch_or(&self->base.attention, WF_ATT_BIND);
		}
	}
}

void lx_bind_in_fault(struct wf_thread *base)
{
	struct lx_thread *self = lx_of(base);

	(void)wf_fetch_or(&self->binds, LX_BIND_FAULT);
	lx_bind_rethink(self, false);
	if (wf_load_seq_cst(&lx.has_userfaults))
		return;
	(void)wf_fetch_and(&self->binds, ~LX_BIND_FAULT);
	/* Think again at the exit of the next call. */
	(void)wf_fetch_or(&base->attention, WF_ATT_BIND);
}

long lx_bind_for(uint32_t reason)
{
	struct lx_thread *self = lx_self();
	bool was_bound = wf_is_bound(&self->base);

	/* Until it is sure that it stays there the kernel thread remains as it was. */
	if (!was_bound && !wf_bind_try())
		return -EAGAIN;
	(void)wf_fetch_or(&self->binds, reason);
	if (!was_bound)
		apply(self);
	return 0;
}

void lx_bind_no_longer_for(uint32_t reason)
{
	struct lx_thread *self = lx_self();

	(void)wf_fetch_and(&self->binds, ~reason);
	lx_bind_rethink(self, true);
}

static void ask(struct lx_thread *t)
{
	(void)wf_fetch_or(&t->base.attention, WF_ATT_BIND);
	lx_signal_interrupt(t);
}

void lx_bind_other(struct lx_thread *t, uint32_t reason)
{
	(void)wf_fetch_or(&t->binds, reason);
	ask(t);
	/* On Linux it is done when the call returns: wait for it if it is at the program's code right now. */
	for (int i = 0;
	     i < WAIT_ROUNDS && !wf_is_bound(&t->base) && wf_load_acquire(&t->base.kthread) &&
	     wf_load_acquire(&t->base.attention) & WF_ATT_BIND;
	     i++)
		sys_relax((uint32_t)i);
}

/* One that is made meanwhile looks at has_userfaults when its reasons are set; see inherit() in thread.c. */
void lx_bind_all_for_faults(void)
{
	struct lx_thread *self = lx_self();

	if (wf_exchange_seq_cst(&lx.has_userfaults, true))
		return;
	for (uint32_t i = 0, n = wf_thread_slots(); i < n; i++) {
		struct lx_thread *t = lx_of(wf_thread_slot(i));
		enum wf_state s = wf_state_of(wf_load_acquire(&t->base.state));

		if (s == WF_FREE || s == WF_DEAD || t == self)
			continue;
		(void)wf_fetch_or(&t->binds, LX_BIND_FAULT);
		ask(t);
	}
	(void)lx_bind_for(LX_BIND_FAULT);
}

void lx_bind_other_no_longer(struct lx_thread *t, uint32_t reason)
{
	if ((wf_fetch_and(&t->binds, ~reason) & ~reason) == 0)
		ask(t);
}
