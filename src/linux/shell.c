// SPDX-License-Identifier: Apache-2.0
/* The state that Linux keeps of a thread; see shell.h. */
#include "linux/shell.h"
#include "arch/arch.h"
#include "linux/bind.h"
#include "linux/credentials.h"
#include "linux/policy.h"
#include "linux/signals.h"

#include <sys/mman.h>

#define SHORT_LIFE_SWITCHES 32
#define SHORT_LIFE_NS (5 * WF_MS)
#define KEPT_BYTES (16ul << 10)

/* Neither its kernel thread nor its place among others differs from anybody's. */
static bool is_as_all(const struct lx_thread *t)
{
	return wf_load_acquire(&wf_arch_gate_on) == WF_GATE_ON && !wf_is_bound(&t->base) &&
	       !wf_load_acquire(&t->binds) && wf_load_relaxed(&t->policy) == lx.base_policy &&
	       t->priority == lx.base_priority && !t->has_affinity && !t->has_ioprio &&
	       !t->is_filtered && !t->base.has_own_files && !wf_load_relaxed(&lx.has_userfaults);
}

bool lx_shell_may_inherit(const struct lx_thread *self)
{
	return is_as_all(self) && !self->is_mask_unknown;
}

void lx_shell_inherit(const struct lx_thread *self, struct lx_shell_heritage *out)
{
	*out = (struct lx_shell_heritage){
		.mask = self->sig_mask,
		.timer_slack_ns = self->timer_slack_ns,
		.nice = self->nice,
	};
	__builtin_memcpy(out->name, self->name, sizeof(out->name));
}

/* struct robust_list_head: no lock is held, taken or released. */
static bool holds_robust_locks(const struct lx_thread *t)
{
	const uintptr_t *head = (const uintptr_t *)t->robust_head;

	return head && (head[0] != (uintptr_t)head || head[2]);
}

bool lx_shell_is_plain(const struct lx_thread *self)
{
	return is_as_all(self) && !self->altstack.size && !self->fp_room && !self->has_saved_mask &&
	       !self->has_death_signal && !wf_load_acquire(&self->pending.set) &&
	       !holds_robust_locks(self);
}

/* See sysc_madvise(). */
void lx_shell_leave(struct lx_thread *self)
{
	uintptr_t high = WF_ALIGN_DOWN((uintptr_t)__builtin_frame_address(0) - KEPT_BYTES, WF_PAGE);

	if (self->stack_low && high > self->stack_low &&
	    (self->base.nr_switches > SHORT_LIFE_SWITCHES || self->base.run_ns >= SHORT_LIFE_NS))
		(void)sys3(__NR_madvise, self->stack_low, high - self->stack_low, MADV_DONTNEED);
	lx_shell_show_join(self, NULL);
}

/* As at a thread's end, but for its queue, and for what libc waits for. */
void lx_shell_rest(struct lx_thread *self)
{
	const uint64_t mask = ~lx_bit(LX_SIG_SETXID);

	wf_store_release(&self->is_mask_unknown, false);
	wf_store_release(&self->sig_shown_mask, mask);
	wf_store_release(&self->sig_mask, mask);
}

/* A sender adds first, then looks at masks; see lx_signal_set_mask(). */
void lx_shell_pass_on(struct lx_thread *self)
{
	if (WF_UNLIKELY(wf_load_seq_cst(&self->pending.set) & lx_bit(LX_SIG_SETXID)))
		(void)wf_fetch_or(&self->base.attention, WF_ATT_SIGNAL);
	if (WF_UNLIKELY(wf_load_seq_cst(&lx.shared.set)))
		lx_signal_retarget(~0ull);
}

void lx_shell_begin(struct lx_thread *self, const struct lx_shell_heritage *h)
{
	__builtin_memcpy(self->name, h->name, sizeof(self->name));
	self->timer_slack_ns = self->default_slack_ns = h->timer_slack_ns;
	if (self->nice != h->nice)
		lx_sched_set_nice(self, h->nice);
	wf_store_relaxed(&self->base.run_ns, 0);
	wf_store_relaxed(&self->base.nr_switches, 0);
	lx_signal_set_mask(self, h->mask);
}
