// SPDX-License-Identifier: Apache-2.0
/* The end of a thread, and the one that waits for it; see joiner.h. */
#include "native/joiner.h"
#include "sched/bind.h"
#include "sched/park.h"
#include "sched/scope.h"

#include <errno.h>
#include <limits.h>

/* A joiner that is woken may have given t back, and t another function, before the lock is: all that is t's comes before. */
static bool tell(struct weft_thread *t)
{
	struct wf_thread *joins = t->joins;
	bool has_sleeper = t->has_sleeper;

	t->joins = NULL;
	t->has_sleeper = false;
	wf_store_release(&t->state, WF_USE_DONE);
	if (joins)
		(void)wf_bind_unpark_held(joins, WF_WAKE_EVENT);
	wf_spin_unlock(&t->lock);
	wf_bind_wake_held();
	return has_sleeper;
}

/*
 * A canceller counts itself, and reads root then; the exchange of the lock is the fence between the store of root and the look at that
 * count. It finds no root, or is waited for: what root points to is about to be used for something else.
 */
bool wf_joiner_tell(struct weft_thread *t)
{
	wf_store_relaxed(&t->root, NULL);
	wf_spin_lock(&t->lock);
	while (WF_UNLIKELY(wf_load_seq_cst(&t->nr_cancelling))) {
		wf_spin_unlock(&t->lock);
		wf_yield();
		wf_spin_lock(&t->lock);
	}
	return tell(t);
}

bool wf_joiner_tell_closed(struct weft_thread *t)
{
	wf_spin_lock(&t->lock);
	return tell(t);
}

static void on_gone(void *t)
{
	if (wf_joiner_tell_closed(t))
		(void)sys_futex_wake(&((struct weft_thread *)t)->state, INT_MAX);
}

void wf_joiner_tell_when_gone(struct wf_thread *self, struct weft_thread *t)
{
	wf_self_enter(self);
	wf_store_release(&lx_config.on_thread_gone, on_gone);
	lx_shell_end(lx_of(self), t);
	wf_self_leave(self);
}

/* Under the lock. -EAGAIN: t is to be waited for, and nobody else joins it. 0: it has ended. */
static int claim(struct weft_thread *t, struct wf_joiner *join)
{
	if (t->state != WF_USE_RUNNING)
		return 0;
	if (join->is_claimed)
		return -EAGAIN;
	if (t->is_joined)
		return -EBUSY;
	join->is_claimed = true;
	t->joiner = join->joiner;
	wf_store_relaxed(&t->is_joined, 1u);
	return -EAGAIN;
}

static int await_parked(struct wf_thread *self, struct weft_thread *t, struct wf_joiner *join,
			int64_t until)
{
	enum wf_reason reason;
	bool is_over;
	int error;

	wf_park_begin_before_lock(WF_INTR | WF_REACHED, WF_WAIT_FUTEX, (uintptr_t)&t->state);
	wf_spin_lock(&t->lock);
	error = claim(t, join);
	if (error == -EAGAIN)
		t->joins = self;
	wf_spin_unlock(&t->lock);
	if (error != -EAGAIN) {
		(void)wf_park_abort();
		return error;
	}
	reason = wf_park(until);
	if (WF_LIKELY(reason == WF_WAKE_EVENT)) /* by t itself, and by no other */
		return 0;
	wf_spin_lock(&t->lock);
	t->joins = NULL;
	is_over = t->state != WF_USE_RUNNING;
	wf_spin_unlock(&t->lock);
	if (is_over)
		return 0;
	error = self->scopes ? wf_scopes_end(self->scopes, WF_SCOPE_BY_WAIT, 0) : 0;
	if (error)
		return error;
	return reason == WF_WAKE_TIMEOUT ? -ETIMEDOUT : -EINTR;
}

int wf_joiner_await(struct wf_thread *self, struct weft_thread *t, struct wf_joiner *join,
		    int64_t until)
{
	int ret = 0;

	wf_self_enter(self);
	if (self) {
		ret = await_parked(self, t, join, until);
	} else {
		wf_spin_lock(&t->lock);
		ret = claim(t, join);
		if (ret == -EAGAIN)
			t->has_sleeper = true;
		wf_spin_unlock(&t->lock);
		ret = ret == -EAGAIN ? 0 : ret;
	}
	wf_self_leave(self);
	return ret;
}
