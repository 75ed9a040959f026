// SPDX-License-Identifier: Apache-2.0
/*
 * Where signals are pending and whom they go to.
 *
 * Three places hold a pending signal:
 *   - the kernel, for the process, while no thread wants it ("parked": execve, signalfd, timers and queue
 *     limits see it there); the door leaves parked signals alone;
 *   - a thread's queue, once it was sent to that thread or chosen for it;
 *   - nowhere else: a signal taken by the door is at once posted, parked, ignored, or acted upon.
 *
 * Every kernel thread blocks everything but the kick and synchronous faults, so the program's masks are plain
 * stores. The kernel's dispositions are kept equal to the program's, but for the kick and the faults: a fork
 * child is native with the right handlers, and ignored signals stay ignored over exec.
 *
 * Invariant (no lost signal): a poster writes the pending bit and the attention word, then looks at the state
 * and the kernel thread of the target; the target writes its state or kernel thread, then looks at the
 * attention word. lx_signal_notify() covers every pair.
 */
#include "linux/abi.h"
#include "linux/calls.h"

#include <signal.h>

#define MEMBARRIER_PRIVATE_EXPEDITED 8

struct lx_process lx;

bool lx_signal_default_ignores(int sig)
{
	return sig == SIGCHLD || sig == SIGURG || sig == SIGWINCH || sig == SIGCONT;
}

bool lx_signal_is_ignored(int sig)
{
	void *h = lx.action[sig].handler;

	return h == SIG_IGN || (h == SIG_DFL && lx_signal_default_ignores(sig));
}

bool lx_signal_is_wanted(struct lx_thread *t)
{
	return (wf_load_seq_cst(&t->sig_pending) & ~wf_load_relaxed(&t->sig_mask)) != 0;
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

/* Make t look at its attention word soon, whatever it is doing. */
static void notify(struct lx_thread *t)
{
	struct wf_kthread *k;

	(void)wf_fetch_or(&t->base.attention, WF_ATT_SIGNAL);
	if (wf_unpark(&t->base, WF_WAKE_INTERRUPTED))
		return;
	k = wf_load_seq_cst(&t->base.kthread);
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

static struct lx_sigq *new_sigq(int sig, const struct wf_siginfo *info)
{
	struct lx_sigq *q = wf_slab_get(&lx.sigqs);

	if (!q)
		return NULL;
	wf_list_init(&q->link);
	if (info)
		q->info = *info;
	else
		q->info = (struct wf_siginfo){ .signo = sig };
	q->info.signo = sig;
	return q;
}

void lx_signal_post(struct lx_thread *t, int sig, const struct wf_siginfo *info)
{
	struct lx_sigq *q;
	bool is_known;

	if (lx_signal_is_ignored(sig) && !(wf_load_relaxed(&t->sig_mask) & lx_bit(sig)) &&
	    !(wf_load_relaxed(&t->sig_awaited) & lx_bit(sig)))
		return;
	q = new_sigq(sig, info);
	wf_spin_lock(&t->sig_lock);
	is_known = t->sig_pending & lx_bit(sig);
	/* Standard signals coalesce; real-time ones queue. Without memory the bit alone is delivered. */
	if (q && (!is_known || sig >= 32)) {
		wf_list_push_tail(&t->sig_queue, &q->link);
		q = NULL;
	}
	wf_store_seq_cst(&t->sig_pending, t->sig_pending | lx_bit(sig));
	wf_spin_unlock(&t->sig_lock);
	wf_slab_put(&lx.sigqs, q);
	if (wf_self_kthread())
		WF_TRACE(wf_self_kthread(), WF_EV_SIGNAL, sig, lx_tid(t));
	if (!(wf_load_seq_cst(&t->sig_mask) & lx_bit(sig)) ||
	    wf_load_seq_cst(&t->sig_awaited) & lx_bit(sig))
		notify(t);
}

/* Under t->sig_lock: the first queued signal of set, lowest number first. 0: none. */
static int take_locked(struct lx_thread *t, uint64_t set, struct wf_siginfo *out)
{
	uint64_t ready = t->sig_pending & set;
	struct wf_list *n, *tmp;
	struct lx_sigq *hit = NULL;
	bool more = false;
	int sig;

	if (!ready)
		return 0;
	/* A fault comes before everything: the instruction cannot go on without it. */
	if (ready &
	    (lx_bit(SIGSEGV) | lx_bit(SIGBUS) | lx_bit(SIGILL) | lx_bit(SIGFPE) | lx_bit(SIGTRAP)))
		ready &= lx_bit(SIGSEGV) | lx_bit(SIGBUS) | lx_bit(SIGILL) | lx_bit(SIGFPE) |
			 lx_bit(SIGTRAP);
	sig = __builtin_ctzl(ready) + 1;
	wf_list_for_each_safe (n, tmp, &t->sig_queue) {
		struct lx_sigq *q = container_of(n, struct lx_sigq, link);

		if (q->info.signo != sig)
			continue;
		if (hit)
			more = true;
		else
			hit = q;
	}
	if (!more)
		wf_store_seq_cst(&t->sig_pending, t->sig_pending & ~lx_bit(sig));
	if (hit) {
		wf_list_remove(&hit->link);
		*out = hit->info;
		wf_slab_put(&lx.sigqs, hit);
	} else {
		*out = (struct wf_siginfo){ .signo = sig };
	}
	return sig;
}

int lx_signal_take(struct lx_thread *t, uint64_t set, struct wf_siginfo *out)
{
	int sig;

	if (!(wf_load_seq_cst(&t->sig_pending) & set))
		return 0;
	wf_spin_lock(&t->sig_lock);
	sig = take_locked(t, set, out);
	wf_spin_unlock(&t->sig_lock);
	return sig;
}

static bool wants(struct lx_thread *t, int sig)
{
	enum wf_state s = wf_state_of(wf_load_acquire(&t->base.state));

	if (s == WF_FREE || s == WF_NEW || s == WF_DEAD || wf_load_seq_cst(&t->is_mask_unknown))
		return false;
	return !(wf_load_seq_cst(&t->sig_shown_mask) & lx_bit(sig)) ||
	       wf_load_seq_cst(&t->sig_awaited) & lx_bit(sig);
}

/* As Linux chooses: the main thread if it wants it, else the next that does. */
static struct lx_thread *choose_target(int sig)
{
	uint32_t n = wf_thread_slots();

	/* In its first pthread_create: whoever asks for a decision now asks again when main's mask is known. */
	if (wf_load_seq_cst(&lx.main->is_mask_unknown))
		return NULL;
	if (wants(lx.main, sig))
		return lx.main;
	for (uint32_t i = 0; i < n; i++) {
		struct lx_thread *t = lx_of(wf_thread_slot(i));

		if (t != lx.main && wants(t, sig))
			return t;
	}
	return NULL;
}

/* Back into the kernel, where it waits until somebody wants it. */
static void requeue_in_kernel(int sig, struct wf_siginfo *info)
{
	info->signo = sig;
	if (sys3(__NR_rt_sigqueueinfo, wf_rt.pid, sig, info) < 0)
		(void)sys2(__NR_kill, wf_rt.pid, sig);
}

static void park_signal(int sig, const struct wf_siginfo *info)
{
	const struct __kernel_timespec now = { 0, 0 };
	const uint64_t set = lx_bit(sig);
	bool was_parked = wf_fetch_or(&lx.parked, set) & set;
	struct wf_siginfo next = *info;
	struct wf_list behind, *n;
	struct lx_sigq *q;

	wf_list_init(&behind);
	if (wf_self_kthread()->is_door) {
		/* What the door holds was the oldest of its number: take those behind it out, and put all back in order. */
		while (sys4(__NR_rt_sigtimedwait, &set, &next, &now, sizeof(set)) == sig &&
		       (q = new_sigq(sig, &next)))
			wf_list_push_tail(&behind, &q->link);
		next = *info;
	} else if (!was_parked) {
		/* The door may be waiting with the set of before: it would take this one, and requeue it last. */
		lx_door_pass();
	}
	requeue_in_kernel(sig, &next);
	while ((n = wf_list_pop_head(&behind))) {
		q = container_of(n, struct lx_sigq, link);
		requeue_in_kernel(sig, &q->info);
		wf_slab_put(&lx.sigqs, q);
	}
	/* Somebody may have unblocked it between our look and the bit: then nobody would come for it. */
	if (choose_target(sig))
		lx_signal_unpark(lx_bit(sig));
}

void lx_signal_process(int sig, const struct wf_siginfo *info)
{
	struct lx_thread *t = choose_target(sig);

	if (t)
		lx_signal_post(t, sig, info);
	else
		park_signal(sig, info);
}

void lx_signal_unpark(uint64_t set)
{
	if (!(wf_load_seq_cst(&lx.parked) & set))
		return;
	(void)wf_fetch_and(&lx.parked, ~set);
	wf_kick(wf_rt.door);
}

void lx_signal_set_mask(struct lx_thread *t, uint64_t mask)
{
	uint64_t opened = t->sig_mask & ~mask;

	/*
	 * libc blocks all 64, its own two included, only around short critical sections (a program cannot: it
	 * never gets at those two). A signal for the process that comes then waits for the section to end,
	 * instead of going to another thread.
	 */
	if ((mask | LX_UNBLOCKABLE) != ~0ull) {
		wf_store_seq_cst(&t->sig_shown_mask, mask);
		if (t->is_mask_unknown) {
			wf_store_seq_cst(&t->is_mask_unknown, false);
			if (t == lx.main)
				opened =
					~0ull; /* every decision about a signal was put off until now */
		}
	}
	mask &= ~LX_UNBLOCKABLE;
	wf_store_seq_cst(&t->sig_mask, mask);
	if (opened && wf_load_seq_cst(&lx.parked) & opened)
		lx_signal_unpark_and_wait(opened);
	if (lx_signal_is_wanted(t))
		(void)wf_fetch_or(&t->base.attention, WF_ATT_SIGNAL);
}
/*
 * The sender itself is the best target when it does not block the signal and the main thread does; Linux
 * prefers main, then the others in order.
 */
void lx_signal_send_self(int sig, const struct wf_siginfo *info)
{
	struct lx_thread *self = lx_self();

	if (!lx.main->is_mask_unknown && !wants(lx.main, sig) && wants(self, sig))
		lx_signal_post(self, sig, info);
	else
		lx_signal_process(sig, info);
}

void lx_signal_thread_init(struct lx_thread *t, const struct lx_thread *parent)
{
	t->sig_lock = (struct wf_spin){ 0 };
	t->sig_mask = parent ? parent->sig_mask : 0;
	t->sig_shown_mask = parent ? parent->sig_shown_mask : 0;
	t->is_mask_unknown = parent && parent->is_mask_unknown;
	t->sig_pending = t->sig_awaited = 0;
	t->has_saved_mask = false;
	t->altstack = (struct wf_stack_t){ .flags = SS_DISABLE };
	wf_list_init(&t->sig_queue);
}

void lx_signal_thread_exit(struct lx_thread *t)
{
	struct wf_siginfo info;

	wf_store_seq_cst(&t->is_mask_unknown, false);
	wf_store_seq_cst(&t->sig_shown_mask, ~0ull);
	wf_store_seq_cst(&t->sig_mask, ~0ull);
	while (lx_signal_take(t, ~0ull, &info))
		;
}

/* A write hit a closed pipe on a kernel thread that blocks SIGPIPE: it stays pending there unless taken. */
void lx_signal_take_sigpipe(void)
{
	struct __kernel_timespec zero = { 0, 0 };
	uint64_t set = lx_bit(SIGPIPE);
	struct wf_siginfo info;

	if (sys4(__NR_rt_sigtimedwait, &set, &info, &zero, sizeof(set)) == SIGPIPE)
		lx_signal_post(lx_self(), SIGPIPE, &info);
}

void lx_signal_push_front(struct lx_thread *t, int sig, const struct wf_siginfo *info)
{
	struct lx_sigq *q = new_sigq(sig, info);

	wf_spin_lock(&t->sig_lock);
	if (q)
		wf_list_push_head(&t->sig_queue, &q->link);
	wf_store_seq_cst(&t->sig_pending, t->sig_pending | lx_bit(sig));
	wf_spin_unlock(&t->sig_lock);
}
