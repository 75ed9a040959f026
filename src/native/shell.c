// SPDX-License-Identifier: Apache-2.0
/* Shells; see shell.h. */
#include "native/shell.h"
#include "sched/bind.h"
#include "sched/park.h"
#include "sched/scope.h"

#include <errno.h>

#define MOST_RESTING 1024u /* of a class: their stacks are mapped */

/* (q) */
static struct {
	struct wf_spin lock;
	struct weft_thread *first;
	uint32_t nr;
	uint32_t
		nr_waiting; /* (a) those that have ended and nobody joins yet: they have stacks, too */
} resting[WF_SHELL_CLASSES];

static void order(struct weft_thread *t, enum wf_thread_order what)
{
	wf_spin_lock(&t->lock);
	t->order = what;
	(void)wf_unpark(t->core, WF_WAKE_EVENT);
	wf_spin_unlock(&t->lock);
}

/* Main has ended, and whoever rests would keep the process. Under its list's lock each finds that out, or is found here. */
static void close_all(void)
{
	for (int i = 0; i < WF_SHELL_CLASSES; i++) {
		struct weft_thread *t, *next;

		wf_spin_lock(&resting[i].lock);
		t = resting[i].first;
		resting[i].first = NULL;
		resting[i].nr = 0;
		wf_spin_unlock(&resting[i].lock);
		for (; t; t = next) {
			next = t->next;
			order(t, WF_ORDER_END);
		}
	}
}

struct weft_thread *wf_shell_take(struct wf_thread *self, int shell_class)
{
	struct lx_shell_heritage heritage;
	struct weft_thread *t;

	if (!wf_load_hint(&resting[shell_class].first) || !lx_shell_inherit(lx_of(self), &heritage))
		return NULL;
	wf_spin_lock(&resting[shell_class].lock);
	t = resting[shell_class].first;
	if (t) {
		resting[shell_class].first = t->next;
		wf_store_hint(&resting[shell_class].nr, resting[shell_class].nr - 1);
	}
	wf_spin_unlock(&resting[shell_class].lock);
	if (t)
		t->heritage = heritage;
	return t;
}

void wf_shell_start(struct wf_thread *self, struct weft_thread *t)
{
	wf_self_enter(self);
	order(t, WF_ORDER_RUN);
	wf_self_leave(self);
}

void wf_shell_give(struct wf_thread *self, struct weft_thread *t)
{
	const int i = t->shell_class;
	bool rests;

	wf_self_enter(self);
	/* In a fork child there may be one that its parent has counted. */
	if (t->is_waiting && wf_load_relaxed(&resting[i].nr_waiting))
		(void)wf_fetch_sub(&resting[i].nr_waiting, 1);
	t->is_waiting = false;
	wf_store_release(&t->state, WF_USE_FREE);
	/* Before the look at the flag: pairs with the other order in end_main(). */
	if (!wf_load_relaxed(&lx_config.on_main_end))
		wf_store_seq_cst(&lx_config.on_main_end, close_all);
	wf_spin_lock(&resting[i].lock);
	/* A kernel thread that is not weft's can wake nobody. */
	rests = !self || (!wf_load_seq_cst(&lx.main_has_ended) && resting[i].nr < MOST_RESTING);
	if (rests) {
		t->next = resting[i].first;
		wf_store_hint(&resting[i].first, t);
		wf_store_hint(&resting[i].nr, resting[i].nr + 1);
	}
	wf_spin_unlock(&resting[i].lock);
	if (!rests)
		order(t, WF_ORDER_END);
	wf_self_leave(self);
}

/*
 * One that nobody waits for keeps its stack until somebody joins, and may be told to end then: to wake it up for that costs more
 * than to end now.
 */
static bool has_room(struct weft_thread *t)
{
	const int i = t->shell_class;
	bool is_awaited;

	wf_spin_lock(&t->lock);
	is_awaited = t->joins || t->is_detached;
	wf_spin_unlock(&t->lock);
	if (is_awaited)
		return true;
	if (wf_load_hint(&resting[i].nr) + wf_load_relaxed(&resting[i].nr_waiting) >= MOST_RESTING)
		return false;
	(void)wf_fetch_add(&resting[i].nr_waiting, 1);
	t->is_waiting = true;
	return true;
}

bool wf_shell_may_rest(struct wf_thread *self, struct weft_thread *t)
{
	bool may;

	wf_self_enter(self);
	may = lx_shell_is_plain(lx_of(self)) && has_room(t);
	if (may)
		lx_shell_rest(lx_of(self));
	wf_self_leave(self);
	return may;
}

bool wf_shell_rest(struct wf_thread *self, struct weft_thread *t)
{
	enum wf_thread_order what;

	wf_self_enter(self);
	do {
		wf_park_begin_before_lock(0, WF_WAIT_UNUSED, 0);
		wf_spin_lock(&t->lock);
		what = t->order;
		wf_spin_unlock(&t->lock);
		if (what)
			(void)wf_park_abort();
		else
			(void)wf_park(WF_NEVER);
	} while (!what);
	t->order = WF_ORDER_NONE;
	if (what == WF_ORDER_RUN)
		lx_shell_begin(lx_of(self), &t->heritage);
	wf_self_leave(self);
	return what == WF_ORDER_RUN;
}

bool wf_shell_publish(struct wf_thread *self, struct weft_thread *t, enum wf_thread_use state)
{
	bool has_sleeper;

	wf_self_enter(self);
	wf_spin_lock(&t->lock);
	wf_store_release(&t->state, state);
	if (t->joins)
		(void)wf_bind_unpark_held(t->joins, WF_WAKE_EVENT);
	t->joins = NULL;
	has_sleeper = t->has_sleeper;
	wf_spin_unlock(&t->lock);
	wf_bind_wake_held();
	wf_self_leave(self);
	return has_sleeper;
}

/* What a dump and the search for circles know as a join. */
static uint64_t shown_word(const struct weft_thread *t)
{
	const struct wf_thread *core = wf_load_acquire(&t->core);

	return (uintptr_t)(core ? lx_of((struct wf_thread *)core)->child_tid : &t->state);
}

static int await_parked(struct wf_thread *self, struct weft_thread *t, int64_t until)
{
	enum wf_reason reason;
	bool is_over;
	int error;

	wf_park_begin_before_lock(WF_INTR | WF_REACHED, WF_WAIT_FUTEX, shown_word(t));
	wf_spin_lock(&t->lock);
	is_over = t->state != WF_USE_RUNNING;
	if (!is_over)
		t->joins = self;
	wf_spin_unlock(&t->lock);
	if (is_over) {
		(void)wf_park_abort();
		return 0;
	}
	reason = wf_park(until);
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

int wf_shell_await(struct wf_thread *self, struct weft_thread *t, int64_t until)
{
	int ret = 0;

	wf_self_enter(self);
	if (self) {
		ret = await_parked(self, t, until);
	} else {
		wf_spin_lock(&t->lock);
		t->has_sleeper = true;
		wf_spin_unlock(&t->lock);
	}
	wf_self_leave(self);
	return ret;
}

void wf_shell_forget(void)
{
	for (int i = 0; i < WF_SHELL_CLASSES; i++) {
		resting[i].lock = (struct wf_spin){ 0 };
		resting[i].first = NULL;
		resting[i].nr = 0;
		resting[i].nr_waiting = 0;
	}
}
