// SPDX-License-Identifier: Apache-2.0
/*
 * Which thread may take a signal, and how it is made to look. signals.c decides which one gets what.
 *
 * Called by: whatever waits, as its wait ends or is about to begin, and whoever has put a signal into a queue.
 */
#include "linux/abi.h"
#include "linux/sigwant.h"
#include "sched/kick.h"

#include <signal.h>

#define MEMBARRIER_PRIVATE_EXPEDITED 8

bool lx_signal_default_ignores(int sig)
{
	return sig == SIGCHLD || sig == SIGURG || sig == SIGWINCH || sig == SIGCONT;
}

bool lx_signal_is_ignored(int sig)
{
	void *h = lx.action[sig].handler;

	return h == SIG_IGN || (h == SIG_DFL && lx_signal_default_ignores(sig));
}

bool lx_signal_is_waiting(struct lx_thread *self)
{
	if (lx_signal_is_wanted(self))
		return true;
	if (!(wf_load_relaxed(&self->base.attention) & WF_ATT_SIGNAL))
		return false;
	(void)wf_fetch_and(&self->base.attention, ~WF_ATT_SIGNAL);
	if (!lx_signal_is_wanted(self))
		return false;
	/* It came after the first look, and its bit may be the one that we took. */
	(void)wf_fetch_or(&self->base.attention, WF_ATT_SIGNAL);
	return true;
}

void lx_signal_interrupt(struct lx_thread *t)
{
	struct wf_kthread *k = wf_load_seq_cst(&t->base.kthread);

	if (!k) {
		/*
		 * Ready, or being switched to at this instant: its kernel thread stores itself, then reads the
		 * attention word, without a fence. The barrier orders all kernel threads: now either we see the
		 * store, or that read has yet to come and sees our bit.
		 */
		(void)sys3(__NR_membarrier, MEMBARRIER_PRIVATE_EXPEDITED, 0, 0);
		k = wf_load_seq_cst(&t->base.kthread);
	}
	if (k && k != wf_self_kthread())
		wf_kick(k);
}

void lx_signal_notify(struct lx_thread *t)
{
	(void)wf_fetch_or(&t->base.attention, WF_ATT_SIGNAL);
	if (!wf_unpark(&t->base, WF_WAKE_INTERRUPTED))
		lx_signal_interrupt(t);
}

bool lx_signal_wants(struct lx_thread *t, int sig)
{
	enum wf_state s = wf_state_of(wf_load_acquire(&t->base.state));

	if (s == WF_FREE || s == WF_NEW || s == WF_DEAD || wf_load_seq_cst(&t->is_mask_unknown))
		return false;
	return !(wf_load_seq_cst(&t->sig_shown_mask) & lx_bit(sig)) ||
	       wf_load_seq_cst(&t->sig_awaited) & lx_bit(sig);
}

/* It waits for a CPU, with another signal to see to: as on Linux, the next is asked first. */
static bool is_occupied(struct lx_thread *t)
{
	return wf_load_relaxed(&t->base.attention) & WF_ATT_SIGNAL &&
	       !wf_load_relaxed(&t->base.kthread);
}

struct lx_thread *lx_signal_choose(int sig, struct lx_thread *second)
{
	struct lx_thread *first[] = { lx.main, second }, *occupied = NULL;
	uint32_t n = wf_thread_slots();

	/* In its first pthread_create: whoever asks for a decision now asks again when main's mask is known. */
	if (wf_load_seq_cst(&lx.main->is_mask_unknown) &&
	    !wf_load_seq_cst(&lx.chooses_without_main))
		return NULL;
	for (uint32_t i = 0; i < ARRAY_LEN(first) + n; i++) {
		struct lx_thread *t = i < ARRAY_LEN(first)
					      ? first[i]
					      : lx_of(wf_thread_slot(i - ARRAY_LEN(first)));

		if (!t || !lx_signal_wants(t, sig))
			continue;
		if (!is_occupied(t))
			return t;
		if (!occupied)
			occupied = t;
	}
	return occupied;
}
