// SPDX-License-Identifier: Apache-2.0
/*
 * Queues of pending signals: one for each thread, one for the process.
 *
 * Called by: signals.c and sigpark.c, which decide who may take what.
 *
 * A thread's queue is closed when the thread ends: who found the thread before that may come later, when the slot is
 * another thread's, and adds nothing then.
 *
 * Invariant: a bit of p->set is up as long as a signal of that number can be taken. Standard signals are
 * there once, real-time ones as often as they were sent, oldest first. Bits are read without the lock by
 * whoever asks whether it is worth a look.
 */
#include "linux/sigqueue.h"
#include "linux/abi.h"

#include <signal.h>

#define RLIMIT_SIGPENDING 11

bool lx_signal_is_timers(const struct wf_siginfo *info)
{
	return info->code == SI_TIMER ||
	       (info->code == SI_KERNEL &&
		(info->signo == SIGALRM || info->signo == SIGVTALRM || info->signo == SIGPROF));
}

void lx_pending_init(struct lx_pending *p, uint32_t owner)
{
	p->lock = (struct wf_spin){ 0 };
	p->owner = owner;
	wf_store_relaxed(&p->set, 0ull);
	wf_list_init(&p->queue);
}

static bool is_over_limit(void)
{
	uint64_t limit[2];

	return sys4(__NR_prlimit64, 0, RLIMIT_SIGPENDING, 0, limit) == 0 &&
	       wf_load_relaxed(&lx.nr_sigqs) >= limit[0];
}

static struct lx_sigq *new_sigq(int sig, const struct wf_siginfo *info)
{
	struct lx_sigq *q = wf_slab_get(&lx.sigqs);

	if (!q)
		return NULL;
	wf_fetch_add(&lx.nr_sigqs, 1u);
	wf_list_init(&q->link);
	q->info = *info;
	q->info.signo = sig;
	return q;
}

static void free_sigq(struct lx_sigq *q)
{
	if (!q)
		return;
	wf_fetch_sub(&lx.nr_sigqs, 1u);
	wf_slab_put(&lx.sigqs, q);
}

/* Under the lock: a timer whose last signal is still there counts an overrun instead of queueing another. */
static bool is_overrun(struct lx_pending *p, const struct wf_siginfo *info)
{
	struct wf_list *n, *tmp;

	if (info->code != SI_TIMER)
		return false;
	wf_list_for_each_safe (n, tmp, &p->queue) {
		struct lx_sigq *q = container_of(n, struct lx_sigq, link);

		if (q->info.code == SI_TIMER && q->info.timer.timer_id == info->timer.timer_id) {
			int64_t sum = (int64_t)q->info.timer.overrun + info->timer.overrun + 1;

			q->info.timer.overrun = (int)WF_MIN(sum, INT32_MAX);
			return true;
		}
	}
	return false;
}

long lx_pending_add(struct lx_pending *p, uint32_t owner, int sig, const struct wf_siginfo *info,
		    bool is_new)
{
	struct lx_sigq *q = NULL;
	bool is_owners;

	if (sig < LX_FIRST_REALTIME && info->code != SI_TIMER &&
	    wf_load_seq_cst(&p->set) & lx_bit(sig))
		return 0;
	/* As the kernel: without room a bit stays for what was no sigqueue(), and sigqueue() fails. */
	if (sig < LX_FIRST_REALTIME || !is_new || !is_over_limit())
		q = new_sigq(sig, info);
	if (!q && is_new && sig >= LX_FIRST_REALTIME && info->code != SI_USER)
		return -EAGAIN;
	wf_spin_lock(&p->lock);
	is_owners = p->owner == owner;
	if (q && is_owners && !is_overrun(p, info) &&
	    (sig >= LX_FIRST_REALTIME || !(p->set & lx_bit(sig)))) {
		wf_list_push_tail(&p->queue, &q->link);
		q = NULL;
	}
	if (is_owners)
		wf_store_seq_cst(&p->set, p->set | lx_bit(sig));
	wf_spin_unlock(&p->lock);
	free_sigq(q);
	return is_owners ? 0 : -ESRCH;
}

void lx_pending_close(struct lx_pending *p)
{
	wf_spin_lock(&p->lock);
	p->owner = 0;
	wf_spin_unlock(&p->lock);
	lx_pending_drop(p, ~0ull);
}

void lx_pending_push_front(struct lx_pending *p, int sig, const struct wf_siginfo *info)
{
	struct lx_sigq *q = new_sigq(sig, info);

	wf_spin_lock(&p->lock);
	if (q)
		wf_list_push_head(&p->queue, &q->link);
	wf_store_seq_cst(&p->set, p->set | lx_bit(sig));
	wf_spin_unlock(&p->lock);
}

/* Under the lock. */
static int take(struct lx_pending *p, uint64_t set, struct lx_sigq **out)
{
	uint64_t ready = p->set & set;
	struct wf_list *n, *tmp;
	bool more = false;
	int sig;

	*out = NULL;
	if (!ready)
		return 0;
	/* A fault comes before everything: the instruction cannot go on without it. */
	if (ready & LX_FAULTS)
		ready &= LX_FAULTS;
	sig = __builtin_ctzl(ready) + 1;
	wf_list_for_each_safe (n, tmp, &p->queue) {
		struct lx_sigq *q = container_of(n, struct lx_sigq, link);

		if (q->info.signo != sig)
			continue;
		more = *out != NULL;
		if (more)
			break;
		*out = q;
	}
	if (!more)
		wf_store_seq_cst(&p->set, p->set & ~lx_bit(sig));
	if (*out)
		wf_list_remove(&(*out)->link);
	return sig;
}

int lx_pending_take(struct lx_pending *p, uint64_t set, struct wf_siginfo *out)
{
	struct lx_sigq *q;
	int sig;

	if (!(wf_load_seq_cst(&p->set) & set))
		return 0;
	wf_spin_lock(&p->lock);
	sig = take(p, set, &q);
	wf_spin_unlock(&p->lock);
	if (!sig)
		return 0;
	*out = q ? q->info : (struct wf_siginfo){ .signo = sig };
	free_sigq(q);
	return sig;
}

void lx_pending_drop(struct lx_pending *p, uint64_t set)
{
	struct wf_siginfo info;

	while (lx_pending_take(p, set, &info))
		;
}

bool lx_pending_is_timers(struct lx_pending *p, uint64_t set)
{
	uint64_t timers = 0, others = 0;
	struct wf_list *n, *tmp;

	if (!(wf_load_seq_cst(&p->set) & set))
		return true;
	wf_spin_lock(&p->lock);
	wf_list_for_each_safe (n, tmp, &p->queue) {
		struct lx_sigq *q = container_of(n, struct lx_sigq, link);

		if (lx_signal_is_timers(&q->info))
			timers |= lx_bit(q->info.signo);
		else
			others |= lx_bit(q->info.signo);
	}
	others |= p->set & ~timers; /* of which nothing is known but the number */
	wf_spin_unlock(&p->lock);
	return !(others & set);
}

void lx_pending_drop_timer(struct lx_pending *p, int timer_id)
{
	struct wf_list *n, *tmp;
	struct lx_sigq *hit = NULL;
	uint64_t others = 0;

	if (!wf_load_seq_cst(&p->set))
		return;
	wf_spin_lock(&p->lock);
	wf_list_for_each_safe (n, tmp, &p->queue) {
		struct lx_sigq *q = container_of(n, struct lx_sigq, link);

		if (q->info.code == SI_TIMER && q->info.timer.timer_id == timer_id)
			hit = q; /* there is one at most */
		else
			others |= lx_bit(q->info.signo);
	}
	if (hit) {
		wf_list_remove(&hit->link);
		wf_store_seq_cst(&p->set, p->set & ~(lx_bit(hit->info.signo) & ~others));
	}
	wf_spin_unlock(&p->lock);
	free_sigq(hit);
}
