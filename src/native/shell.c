// SPDX-License-Identifier: Apache-2.0
/* Shells; see shell.h. */
#include "native/shell.h"
#include "base/die.h"
#include "sched/account.h"
#include "sched/bind.h"
#include "sched/park.h"
#include "sched/runtime.h"
#include "sched/scope.h"

#include <errno.h>
#include <limits.h>

/*
 * Of a class. Two pages and a kilobyte stay with each, as with the stacks that libc keeps under weft run; to end so many and to make
 * them again costs a hundred times what they do.
 */
#define MOST_RESTING 16384u
/* Of a class, where they gave themselves back: what is theirs is in the caches there, and no other worker is at that lock. */
#define MOST_HERE 32u

/* (q) */
struct shelf {
	struct wf_spin lock;
	uint32_t nr;
	struct weft_thread *first;
};

static struct shelf everywhere[WF_SHELL_CLASSES];
static struct {
	struct shelf shelves[WF_SHELL_CLASSES];
} WF_ALIGNED(WF_CACHE_LINE) here[WF_MAX_WORKERS]; /* by worker */
static uint32_t nr_here; /* (a) that may have been used: a fork child's runtime knows of none */

/* (a) by class: those that have ended and nobody joins yet. They have stacks, too. */
static uint32_t nr_waiting[WF_SHELL_CLASSES];

/* It is the caller's, who has found it. The exchange in wf_unpark() publishes what it is to do. */
static void order(struct weft_thread *t, enum wf_thread_order what)
{
	bool won;

	t->order = what;
	won = wf_unpark(t->core, WF_WAKE_EVENT);
	WF_ASSERT(won);
	(void)won;
}

static void end_all(struct shelf *s)
{
	struct weft_thread *t, *next;

	wf_spin_lock(&s->lock);
	t = s->first;
	s->first = NULL;
	s->nr = 0;
	wf_spin_unlock(&s->lock);
	for (; t; t = next) {
		next = t->next;
		order(t, WF_ORDER_END);
	}
}

/* Main has ended, and whoever rests would keep the process. Under its shelf's lock each finds that out, or is found here. */
static void close_all(void)
{
	for (int i = 0; i < WF_SHELL_CLASSES; i++) {
		end_all(&everywhere[i]);
		for (uint32_t w = 0; w < wf_rt.nr_workers; w++)
			end_all(&here[w].shelves[i]);
	}
}

/* That of self's worker; NULL: self is none of weft's, or has none, being bound. */
static struct shelf *shelf_here(const struct wf_thread *self, int shell_class)
{
	const struct wf_worker *w = self ? wf_own_kthread()->worker : NULL;

	return w ? &here[w->index].shelves[shell_class] : NULL;
}

static struct weft_thread *take(struct shelf *s)
{
	struct weft_thread *t;

	if (!s || !wf_load_hint(&s->first))
		return NULL;
	wf_spin_lock(&s->lock);
	t = s->first;
	if (t) {
		wf_store_hint(&s->first, t->next);
		wf_store_hint(&s->nr, s->nr - 1);
	}
	wf_spin_unlock(&s->lock);
	return t;
}

/* self: NULL, and t rests in any case: a kernel thread that is not weft's can wake nobody. */
static bool put(struct shelf *s, const struct wf_thread *self, struct weft_thread *t, uint32_t most)
{
	bool rests;

	wf_spin_lock(&s->lock);
	rests = !self || (!wf_load_seq_cst(&lx.main_has_ended) && s->nr < most);
	if (rests) {
		t->next = s->first;
		wf_store_hint(&s->first, t);
		wf_store_hint(&s->nr, s->nr + 1);
	}
	wf_spin_unlock(&s->lock);
	return rests;
}

struct weft_thread *wf_shell_take(struct wf_thread *self, int shell_class)
{
	struct weft_thread *t;

	if (!lx_shell_may_inherit(lx_of(self)))
		return NULL;
	t = take(shelf_here(self, shell_class));
	if (!t)
		t = take(&everywhere[shell_class]);
	if (t)
		lx_shell_inherit(lx_of(self), &t->heritage);
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
	struct shelf *shelf;

	wf_self_enter(self);
	shelf = shelf_here(self, i);
	/* In a fork child there may be one that its parent has counted. */
	if (t->is_waiting && wf_load_relaxed(&nr_waiting[i]))
		(void)wf_fetch_sub(&nr_waiting[i], 1u);
	t->is_waiting = false;
	wf_store_release(&t->state, WF_USE_FREE);
	/* Before the look at the flag: pairs with the other order in end_main(). */
	if (!wf_load_relaxed(&lx_config.on_main_end)) {
		wf_store_relaxed(&nr_here, wf_rt.nr_workers);
		wf_store_seq_cst(&lx_config.on_main_end, close_all);
	}
	if ((!shelf || !put(shelf, self, t, MOST_HERE)) &&
	    !put(&everywhere[i], self, t, MOST_RESTING))
		order(t, WF_ORDER_END);
	wf_self_leave(self);
}

/* A joiner that is woken may have given t back, and t another function, before the lock is: all that is t's comes before. */
static bool publish(struct weft_thread *t, enum wf_thread_use state)
{
	struct wf_thread *joins;
	bool has_sleeper;

	wf_spin_lock(&t->lock);
	joins = t->joins;
	t->joins = NULL;
	has_sleeper = t->has_sleeper;
	t->has_sleeper = false;
	wf_store_release(&t->state, state);
	if (joins)
		(void)wf_bind_unpark_held(joins, WF_WAKE_EVENT);
	wf_spin_unlock(&t->lock);
	wf_bind_wake_held();
	return has_sleeper;
}

bool wf_shell_publish(struct wf_thread *self, struct weft_thread *t, enum wf_thread_use state)
{
	bool has_sleeper;

	wf_self_enter(self);
	has_sleeper = publish(t, state);
	wf_self_leave(self);
	return has_sleeper;
}

/*
 * One that nobody waits for keeps its stack until somebody joins, and may be told to end then: to wake it up for that costs more
 * than to end now. A thread that is about to join may not be seen yet.
 */
static bool has_room(struct weft_thread *t)
{
	const int i = t->shell_class;

	if (t->is_detached || wf_load_relaxed(&t->joins))
		return true;
	if (wf_load_hint(&everywhere[i].nr) + wf_load_relaxed(&nr_waiting[i]) >= MOST_RESTING)
		return false;
	(void)wf_fetch_add(&nr_waiting[i], 1u);
	t->is_waiting = true;
	return true;
}

/* Until the order comes, t is somebody else's: nothing of it is looked at. */
enum wf_shell_rest wf_shell_rest(struct wf_thread *self, struct weft_thread *t)
{
	enum wf_shell_rest ret = WF_REST_REFUSED;
	uint64_t run;

	wf_self_enter(self);
	if (lx_shell_is_plain(lx_of(self)) && has_room(t)) {
		lx_shell_rest(lx_of(self));
		wf_park_begin_before_lock(0, WF_WAIT_UNUSED, 0);
		if (t->is_detached)
			wf_shell_give(self, t);
		else if (publish(t, WF_USE_DONE))
			(void)sys_futex_wake(&t->state, INT_MAX);
		lx_shell_pass_on();
		run = self->nr_switches;
		(void)wf_park(WF_NEVER);
		run -= self->nr_switches;
		ret = t->order == WF_ORDER_RUN ? WF_REST_RUNS : WF_REST_ENDS;
		if (ret == WF_REST_RUNS)
			lx_shell_begin(lx_of(self), &t->heritage);
		/* The order came before the switch: the last function's time is not charged yet. */
		if (run == 0)
			wf_account_restart(self);
	}
	wf_self_leave(self);
	return ret;
}

/* A dump and the search for circles know this as a join. */
static uint64_t shown_word(const struct weft_thread *t)
{
	const struct wf_thread *core = wf_load_acquire(&t->core);

	return (uintptr_t)(core ? lx_of((struct wf_thread *)core)->child_tid : &t->state);
}

/* Under the lock. -EAGAIN: t is to be waited for, and nobody else joins it. 0: it has ended. */
static int claim(struct weft_thread *t, struct wf_shell_join *join)
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

static int await_parked(struct wf_thread *self, struct weft_thread *t, struct wf_shell_join *join,
			int64_t until)
{
	enum wf_reason reason;
	bool is_over;
	int error;

	wf_park_begin_before_lock(WF_INTR | WF_REACHED, WF_WAIT_FUTEX, shown_word(t));
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

int wf_shell_await(struct wf_thread *self, struct weft_thread *t, struct wf_shell_join *join,
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

void wf_shell_forget(void)
{
	for (int i = 0; i < WF_SHELL_CLASSES; i++) {
		everywhere[i] = (struct shelf){ 0 };
		nr_waiting[i] = 0;
		for (uint32_t w = 0; w < nr_here; w++)
			here[w].shelves[i] = (struct shelf){ 0 };
	}
}
