// SPDX-License-Identifier: Apache-2.0
/*
 * Binding: Linux keeps much per kernel thread (filters, namespaces, capabilities, real-time policies, ...).
 * A thread that sets any of it for itself gets a kernel thread of its own, where the kernel keeps it; so do
 * the threads that it makes, which inherit it there. See sched/bind.c for how such a thread runs.
 */
#include "linux/bind.h"
#include "arch/arch.h"
#include "io/fd.h"
#include "linux/calls.h"
#include "linux/deathsig.h"
#include "linux/everybody.h"
#include "linux/names.h"

#include <linux/keyctl.h>
#include <linux/personality.h>
#include <signal.h>

#define SELF 0
#define IOPRIO_WHO_PROCESS 1
#define ARCH_SET_GS 0x1001
#define ARCH_SET_FS 0x1002
#define ARCH_GET_GS 0x1004
#define ARCH_SET_CPUID 0x1012
#define WAIT_ROUNDS 500 /* of sys_relax(): some 15 ms, if the other needs a processor first */

/* What the kernel thread must have for the thread to be as it was told. */
static void apply(const struct lx_thread *self)
{
	uint32_t binds = wf_load_relaxed(&self->binds);

	lx_names_lend(self);
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

long sysc_userfaultfd(struct wf_frame *f)
{
	long ret = sysc_new_fd(f);

	if (ret >= 0)
		lx_bind_all_for_faults();
	return ret;
}

void lx_bind_other_no_longer(struct lx_thread *t, uint32_t reason)
{
	if ((wf_fetch_and(&t->binds, ~reason) & ~reason) == 0)
		ask(t);
}

long lx_bind_call(struct wf_frame *f)
{
	bool was_bound = lx_has_own_state();
	long ret = lx_bind_for(LX_BIND_STATE);

	if (ret < 0)
		return ret;
	ret = lx_blocking(f, false);
	if (ret < 0 && !was_bound)
		lx_bind_no_longer_for(LX_BIND_STATE); /* nothing has changed */
	return ret;
}

long lx_bind_call_unless_alone(struct wf_frame *f)
{
	return lx_is_alone() ? lx_everybody_call(f, lx_has_own_state()) : lx_bind_call(f);
}

/* Nobody else waits for this kernel thread; and a filter of the program's may know only what it calls itself. */
static long call_for_real(struct wf_frame *f)
{
	long ret = lx_blocking(f, false);

	lx_signal_take_raised(ret);
	return ret;
}

long (*lx_bind_handler(long nr, long (*usual)(struct wf_frame *)))(struct wf_frame *)
{
	switch (nr) {
	case __NR_read:
	case __NR_readv:
	case __NR_recvfrom:
	case __NR_write:
	case __NR_writev:
	case __NR_sendto:
	case __NR_sendmsg:
		return call_for_real;
	case __NR_accept:
	case __NR_accept4:
	case __NR_connect:
	case __NR_mq_timedreceive:
	case __NR_mq_timedsend:
	case __NR_preadv2:
	case __NR_pwritev2:
	case __NR_recvmmsg:
	case __NR_recvmsg:
	case __NR_sendfile:
	case __NR_sendmmsg:
	case __NR_splice:
	case __NR_tee:
	case __NR_vmsplice:
		return wf_fd_is_private() ? call_for_real : usual;
	default:
		return usual;
	}
}

long sysc_binds(struct wf_frame *f)
{
	return lx_bind_call(f);
}

static long ring_id(int ring)
{
	return sys3(__NR_keyctl, KEYCTL_GET_KEYRING_ID, ring, 0);
}

/* The kernel makes these when they are first named, for the kernel thread that does it; before, all have the same. */
static bool makes_ring(int ring)
{
	switch (ring) {
	case KEY_SPEC_THREAD_KEYRING:
		return true;
	case KEY_SPEC_PROCESS_KEYRING:
		return ring_id(ring) < 0;
	case KEY_SPEC_SESSION_KEYRING:
		return ring_id(ring) == ring_id(KEY_SPEC_USER_SESSION_KEYRING);
	default:
		return false;
	}
}

/* keyctl, add_key, request_key: those that change what the thread itself has. Any number of keyctl may be a ring. */
long sysc_keys(struct wf_frame *f)
{
	int op = (int)WF_ARG0(f);
	bool is_own;

	switch (f->nr) {
	case __NR_add_key:
		is_own = makes_ring((int)WF_ARG4(f));
		break;
	case __NR_request_key:
		is_own = makes_ring((int)WF_ARG3(f));
		break;
	default:
		is_own = op == KEYCTL_JOIN_SESSION_KEYRING || op == KEYCTL_SET_REQKEY_KEYRING ||
			 op == KEYCTL_ASSUME_AUTHORITY || makes_ring((int)WF_ARG1(f)) ||
			 makes_ring((int)WF_ARG2(f)) || makes_ring((int)WF_ARG3(f)) ||
			 makes_ring((int)WF_ARG4(f));
	}
	return is_own ? lx_bind_call(f) : lx_blocking(f, false);
}

long sysc_personality(struct wf_frame *f)
{
	if ((uint32_t)WF_ARG0(f) == LX_PERSONALITY_QUERY)
		return lx_raw(f);
	if (WF_ARG0(f) & STICKY_TIMEOUTS)
		wf_store_release(&lx.has_sticky_timeouts, true);
	return lx_bind_call(f);
}

/* The kernel says what may be there. It is put there for a moment, in which a kick finds it as in the program's code. */
static long set_base(struct lx_thread *self, struct wf_frame *f)
{
	struct wf_kthread *k = wf_own_kthread();
	long ret;

	if (!WF_ARG1(f) && !self->base.user_base)
		return 0;
	lx_share_base();
	ret = lx_raw(f);
	wf_arch_set_self(k);
	if (ret == 0)
		self->base.user_base = WF_ARG1(f);
	return ret;
}

long sysc_arch_prctl(struct wf_frame *f)
{
	struct lx_thread *self = lx_self();
	long ret;

	switch (WF_ARG0(f)) {
	case ARCH_SET_FS:
		ret = lx_raw(f);
		if (ret == 0)
			self->base.tls = wf_own_kthread()->tls = WF_ARG1(f);
		return ret;
	case ARCH_SET_GS:
		return set_base(self, f);
	case ARCH_GET_GS:
		return wf_arch_copy((void *)WF_ARG1(f), &self->base.user_base,
				    sizeof(self->base.user_base));
	case ARCH_SET_CPUID:
		return lx_bind_call(f);
	default:
		return lx_raw(f);
	}
}
