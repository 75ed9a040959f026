// SPDX-License-Identifier: Apache-2.0
/* Waiting for a word, and setting it; see wait.h for the protocol. */
#include "arch/arch.h"
#include "sched/clock.h"
#include "sched/runtime.h"
#include "sched/scope.h"
#include "sync/wait.h"

#include <errno.h>

static bool sleep_raw(uint32_t *word, uint32_t expected, int64_t timeout_ns)
{
	(void)sys_futex_wait(word, expected, timeout_ns);
	return false;
}

struct wf_wait_outside wf_wait_outside = { .sleep = sleep_raw };

/*
 * A wake-up is made on a kernel thread of ours: it counts there, and asks there who runs. One that is none borrows this
 * structure for it, one at a time, without handlers in between. It makes no kernel thread, which would be a child of
 * whatever process it is: the door does that.
 */
static struct wf_kthread outsider = { .self = &outsider, .is_poller = true };
static struct wf_spin outsider_lock;

static WF_NOINLINE void unpark_from_outside(struct wf_waiter *w, uint32_t served)
{
	uint64_t mask = wf_wait_block(NULL);
	uintptr_t base;

	wf_spin_lock(&outsider_lock);
	base = wf_arch_get_base();
	wf_arch_set_self(&outsider);
	(void)wf_unpark(w->thread, WF_WAKE_EVENT);
	wf_arch_set_base(base);
	wf_spin_unlock(&outsider_lock);
	wf_store_release(&w->word, served);
	wf_wait_unblock(NULL, mask);
}

/* The waiter may return, and its stack be used again, right after the store: the kernel is told the word's address only. */
static void wake_kthread(struct wf_waiter *w, uint32_t served)
{
	const uint64_t one = 1;
	uint32_t *word = &w->word;

	if (w->fd >= 0)
		(void)sys_write(w->fd, &one, sizeof(one));
	wf_store_seq_cst(word, served);
	(void)sys_futex_wake(word, 1);
}

void wf_wait_serve(struct wf_thread *self, struct wf_wait_node *n, int result)
{
	struct wf_waiter *w = n->waiter;
	uint32_t claimed = 2 * (n->index + 1), served = claimed | WF_WAIT_SERVED;

	WF_ASSERT(wf_load_relaxed(&w->word) == claimed);
	n->result = result;
	if (WF_UNLIKELY(!w->thread)) {
		wake_kthread(w, served);
		return;
	}
	if (WF_UNLIKELY(!self)) {
		unpark_from_outside(w, served);
		return;
	}
	/* It is false where the thread is awake for another reason, and sees that it was claimed. */
	(void)wf_unpark(w->thread, WF_WAKE_EVENT);
	wf_store_release(&w->word, served); /* pairs with the load in wf_wait_settle() */
}

void wf_wait_serve_all(struct wf_thread *self, struct wf_wait_node *first, int result)
{
	while (first) {
		struct wf_wait_node *next = first->next;

		wf_wait_serve(self, first, result);
		first = next;
	}
}

void wf_wait_settle(struct wf_waiter *w)
{
	for (uint32_t round = 0; !(wf_load_acquire(&w->word) & WF_WAIT_SERVED); round++)
		sys_relax(round);
}

/* Any other kernel thread has no place of ours at its base register, and may run where no instruction reads it. */
bool wf_wait_is_past(const struct wf_thread *self, int64_t until)
{
	return until <= 1 || until <= (self ? wf_now() : sys_now());
}

/* Time, or whatever else ended the sleep, against a waker: one of the two decides. */
int wf_wait_over(struct wf_waiter *w, int why)
{
	if (wf_wait_give_up(w))
		return why;
	wf_wait_settle(w);
	return 0;
}

static int over_by_scope(struct wf_waiter *w)
{
	int ret = wf_wait_over(w, -EINTR), error = ret ? wf_wait_outside.end() : 0;

	return error ? error : ret;
}

static WF_NOINLINE int sleep_on_word(struct wf_waiter *w, int64_t until)
{
	for (;;) {
		uint32_t word = wf_load_acquire(&w->word);
		int64_t left = -1;

		if (wf_wait_is_claimed(word) && word & WF_WAIT_SERVED)
			return 0;
		if (until != WF_NEVER && !wf_wait_is_claimed(word)) {
			left = until - sys_now();
			if (left <= 0)
				return wf_wait_over(w, -ETIMEDOUT);
		}
		/* After a handler, too: it goes on. */
		if (wf_wait_outside.sleep(&w->word, word, left) && !wf_wait_is_claimed(word))
			return over_by_scope(w);
	}
}

/* Why the park ended. 0: served; -EAGAIN: for nothing that concerns this wait, as when a signal has found another thread. */
static int why_awake(const struct wf_thread *self, struct wf_waiter *w, enum wf_reason reason)
{
	if (WF_LIKELY(wf_wait_is_claimed(wf_load_acquire(&w->word)))) {
		wf_wait_settle(w);
		return 0;
	}
	if (reason == WF_WAKE_TIMEOUT)
		return -ETIMEDOUT;
	if (wf_load_seq_cst(&self->attention) & WF_ATT_SIGNAL) /* its handler first */
		return -EINTR;
	return self->scopes && wf_scopes_are_over(self->scopes) ? -ECANCELED : -EAGAIN;
}

/* The same, as the wait returns it: a scope has ended it only if no waker came first. */
static int end(const struct wf_thread *self, struct wf_waiter *w, int why)
{
	int ret = why ? wf_wait_over(w, why) : 0;

	if (WF_LIKELY(ret != -ECANCELED))
		return ret;
	ret = wf_scopes_end(self->scopes, WF_SCOPE_BY_WAIT, 0);
	return ret ? ret : -EINTR;
}

int wf_wait_park(struct wf_thread *self, struct wf_waiter *w, int64_t until)
{
	enum wf_wait kind;
	uint64_t what;
	int why;

	if (WF_UNLIKELY(!self))
		return sleep_on_word(w, until);
	kind = (enum wf_wait)self->wait_kind;
	what = self->wait_what;
	for (;;) {
		why = why_awake(self, w, wf_park(until));
		if (WF_LIKELY(why != -EAGAIN))
			return end(self, w, why);
		if (!wf_wait_begin_again(w, kind, what))
			return 0;
	}
}

bool wf_wait_begin_again(struct wf_waiter *w, enum wf_wait kind, uint64_t what)
{
	/* Nobody unparks a thread that does not park. PARKING, then the look; pairs with the claim before wf_unpark(). */
	wf_park_begin(WF_INTR | WF_REACHED, kind, what);
	if (!wf_wait_is_claimed(wf_load_seq_cst(&w->word)))
		return true;
	(void)wf_park_abort();
	wf_wait_settle(w);
	return false;
}

int wf_wait_park_beside(struct wf_thread *self, struct wf_waiter *w, int64_t until)
{
	return end(self, w, why_awake(self, w, wf_park(until)));
}
