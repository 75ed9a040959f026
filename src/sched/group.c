// SPDX-License-Identifier: Apache-2.0
/* Groups, and the walk of those who cancel; see group.h. */
#include "sched/group.h"
#include "sched/park.h"
#include "sched/runtime.h"
#include "sched/self.h"
#include "sched/shuffle.h"

#include <linux/futex.h>

struct wf_group_waiter {
	struct wf_list link; /* (q) */
	struct wf_scopes *sc;
	uint32_t at_most;
};

#define SIG_SETMASK 2

/* No handler of the program's, which may cancel, interrupts us under a lock. One of weft's threads is safe from that anyway. */
static uint64_t begin_quiet(const struct wf_thread *self)
{
	const uint64_t all = ~0ull;
	uint64_t before = 0;

	if (!self)
		(void)sys_sigprocmask(SIG_SETMASK, &all, &before);
	return before;
}

static void end_quiet(const struct wf_thread *self, uint64_t before)
{
	if (!self)
		(void)sys_sigprocmask(SIG_SETMASK, &before, NULL);
}

/* Around what the program has called. */
static uint64_t begin(const struct wf_thread *self)
{
	wf_self_enter(self);
	return begin_quiet(self);
}

static void end(const struct wf_thread *self, uint64_t before)
{
	end_quiet(self, before);
	wf_self_leave(self);
}

static void ring(struct wf_scopes *sc)
{
	(void)wf_fetch_add(&sc->bell, 1u);
	(void)sys3(__NR_futex, &sc->bell, FUTEX_WAKE_PRIVATE, INT32_MAX);
}

static void tell(const struct wf_thread *self, struct wf_scopes *sc)
{
	if (!sc->thread) {
		/*
		 * One that was told already has looked, or will: it clears that before its last look at the chain, which our mark
		 * came before. Of groups in groups each tells all below it, and a thousand threads would be woken a thousand times.
		 */
		if (!wf_exchange_seq_cst(&sc->is_told, 1u))
			ring(sc);
		return;
	}
	wf_store_seq_cst(&sc->is_told, 1u); /* before our look at its state; see scope.h */
	wf_step();
	if (self) /* else: not by us, and it looks before it waits the next time */
		wf_park_tell(sc);
}

/* Under the group's lock, which the waiter takes before it goes on. */
static void wake(const struct wf_thread *self, struct wf_group *g, uint32_t nr)
{
	struct wf_list *p, *tmp;

	wf_list_for_each_safe (p, tmp, &g->waiters) {
		struct wf_group_waiter *w = container_of(p, struct wf_group_waiter, link);

		if (nr > w->at_most)
			continue;
		if (!w->sc->thread)
			ring(w->sc);
		else if (self)
			(void)wf_unpark(w->sc->thread, WF_WAKE_EVENT);
	}
}

/* From at up: does s come before a shield does? At known, a scope that was found to lie in s, it is. */
static bool lies_in(const struct wf_scope *at, const struct wf_scope *s,
		    const struct wf_scope *known)
{
	while (at && at != s && at != known)
		at = wf_load_relaxed(&at->state) & WF_SCOPE_SHIELD ? NULL : wf_scope_outer_of(at);
	return at;
}

/*
 * Where a walk is: among the threads of g, or if that is NULL among the groups of sc, and then among its helpers. The lock of
 * that list is held.
 */
struct walk {
	struct wf_scopes *sc;
	struct wf_group *g;
	struct wf_list *at;
	bool in_helpers;
};

/* Where it goes on behind sc, which was a helper or a thread of a group. */
static struct walk behind(struct wf_scopes *sc)
{
	if (sc->helps)
		return (struct walk){ .sc = sc->helps, .at = sc->link.next, .in_helpers = true };
	return (struct walk){ .g = sc->group, .at = sc->link.next };
}

static struct walk among_groups_of(struct wf_scopes *sc)
{
	wf_spin_lock(&sc->lock);
	return (struct walk){ .sc = sc, .at = sc->groups.next };
}

static struct walk among_threads_of(const struct wf_thread *self, struct wf_group *g)
{
	wf_spin_lock(&g->lock);
	wake(self, g, 0);
	return (struct walk){ .g = g, .at = g->members.next };
}

/* Natively its canceller may have left the telling to us, and a fiber may have taken it elsewhere since. */
static bool is_cancelled(const struct wf_group *g)
{
	return wf_load_seq_cst(&g->scope.state) & WF_SCOPE_CANCELLED;
}

/* Tell all threads that lie in s, from where it begins to where it is back. */
static void tell_below(const struct wf_thread *self, struct walk at, const struct wf_scope *s)
{
	const struct walk root = at;

	for (;;) {
		if (at.g && at.at != &at.g->members) {
			struct wf_scopes *sc = container_of(at.at, struct wf_scopes, link);

			tell(self, sc);
			at = among_groups_of(sc);
		} else if (at.g) {
			wf_spin_unlock(&at.g->lock);
			if (at.g == root.g)
				return;
			at = (struct walk){ .sc = at.g->scope.owner, .at = at.g->link.next };
		} else if (at.in_helpers && at.at != &at.sc->helpers) {
			struct wf_scopes *sc = container_of(at.at, struct wf_scopes, link);

			if (lies_in(sc->base, s, at.sc == root.sc ? NULL : at.sc->base)) {
				tell(self, sc);
				at = among_groups_of(sc);
			} else {
				at.at = at.at->next;
			}
		} else if (!at.in_helpers && at.at == &at.sc->groups) {
			at.at = at.sc->helpers.next;
			at.in_helpers = true;
		} else if (!at.in_helpers) {
			struct wf_group *g = container_of(at.at, struct wf_group, link);

			if (lies_in(g->scope.outer, s, at.sc == root.sc ? NULL : at.sc->base) ||
			    (!self && is_cancelled(g)))
				at = among_threads_of(self, g);
			else
				at.at = at.at->next;
		} else {
			wf_spin_unlock(&at.sc->lock);
			if (at.sc == root.sc)
				return;
			at = behind(at.sc);
		}
	}
}

void wf_group_cancel_scope(struct wf_thread *self, struct wf_scope *s)
{
	struct wf_scopes *sc = s->owner;
	uint64_t before;

	if (!sc)
		return;
	/* Before anybody is told: pairs with the look at the chain behind the exchange in scope.c. */
	(void)wf_fetch_or(&s->state, WF_SCOPE_CANCELLED);
	before = begin(self);
	tell(self, sc);
	tell_below(self, among_groups_of(sc), s);
	end(self, before);
}

static bool is_in_cancelled(const struct wf_scope *s)
{
	uint32_t state = 0;

	for (; s && !(state & WF_SCOPE_SHIELD); s = wf_scope_outer_of(s)) {
		state = wf_load_seq_cst(&s->state);
		if (state & WF_SCOPE_CANCELLED)
			return true;
	}
	return false;
}

void wf_group_tell(struct wf_thread *self, struct wf_scopes *sc, const struct wf_scope *s)
{
	uint64_t before;

	if (!wf_scopes_are_over(sc))
		return;
	before = begin(self);
	tell_below(self, among_groups_of(sc), s);
	end(self, before);
}

void wf_group_cancel(struct wf_thread *self, struct wf_group *g, const void *user)
{
	uint64_t before = begin(self);
	bool tells = false;

	wf_spin_lock(&g->lock);
	if (g->user == user) {
		(void)wf_fetch_or(&g->scope.state, WF_SCOPE_CANCELLED);
		/*
		 * Natively each scope that is over ends all waits below it, each time, and whoever has cancelled one around the
		 * group tells all in it: a thousand groups, one in the other, would each do so again. Attached, some waits end
		 * once for each scope.
		 */
		tells = self || !is_in_cancelled(g->scope.outer);
		if (!tells)
			wake(self, g, 0);
	}
	wf_spin_unlock(&g->lock);
	if (tells)
		tell_below(self, among_threads_of(self, g), &g->scope);
	end(self, before);
}

void wf_group_open(struct wf_thread *self, struct wf_scopes *sc, struct wf_group *g,
		   int64_t deadline, const char *name, const void *user)
{
	uint64_t before = begin(self);
	struct wf_scope *top = wf_scopes_top_of(sc);

	wf_scopes_renew_until(sc);
	wf_spin_lock(&sc->lock);
	wf_spin_lock(&g->lock);
	g->scope = (struct wf_scope){
		.deadline = deadline,
		.name = name,
		.outer = top,
		.until = WF_MIN(deadline, sc->until),
		.owner = sc,
	};
	g->nr = 0;
	wf_list_init(&g->members);
	wf_list_init(&g->waiters);
	g->user = user;
	g->error = 0;
	g->has_success = g->is_cancelled = false;
	wf_spin_unlock(&g->lock);
	wf_list_push_tail(&sc->groups, &g->link);
	if (top && top != sc->base)
		(void)wf_fetch_or(&top->state, WF_SCOPE_HAS_GROUPS);
	wf_spin_unlock(&sc->lock);
	end(self, before);
}

void wf_group_close(struct wf_thread *self, struct wf_group *g)
{
	struct wf_scopes *sc = g->scope.owner;
	uint64_t before = begin(self);

	wf_spin_lock(&sc->lock);
	wf_spin_lock(&g->lock);
	wf_list_remove(&g->link);
	g->user = NULL;
	wf_spin_unlock(&g->lock);
	wf_spin_unlock(&sc->lock);
	end(self, before);
}

bool wf_group_count_in(struct wf_thread *self, struct wf_group *g, uint32_t limit)
{
	uint64_t before = begin(self);
	bool has_room;

	wf_spin_lock(&g->lock);
	has_room = !limit || g->nr < limit;
	g->nr += has_room;
	wf_spin_unlock(&g->lock);
	end(self, before);
	return has_room;
}

bool wf_group_count_out(struct wf_thread *self, struct wf_group *g)
{
	uint64_t before = begin(self);
	bool is_last;

	wf_spin_lock(&g->lock);
	is_last = !--g->nr;
	wake(self, g, g->nr);
	wf_spin_unlock(&g->lock);
	end(self, before);
	return is_last;
}

int wf_group_error(struct wf_thread *self, struct wf_scopes *sc, struct wf_group *g)
{
	int error;

	wf_self_enter(self);
	error = wf_scope_error_of(sc, &g->scope);
	wf_self_leave(self);
	return error;
}

int wf_group_check(struct wf_thread *self, struct wf_scopes *sc, uint32_t by)
{
	int error;

	wf_self_enter(self);
	error = wf_scopes_end(sc, by, 0);
	wf_self_leave(self);
	return error;
}

void wf_group_join(struct wf_thread *self, struct wf_scopes *sc, struct wf_group *g)
{
	uint64_t before = begin(self);

	sc->group = g;
	wf_scopes_set_base(sc, &g->scope);
	wf_spin_lock(&g->lock);
	wf_list_push_tail(&g->members, &sc->link);
	wf_spin_unlock(&g->lock);
	/* Of what came before nobody has told us. */
	wf_store_relaxed(&sc->is_told, 1u);
	end(self, before);
}

void wf_group_leave(struct wf_thread *self, struct wf_scopes *sc)
{
	struct wf_group *g = sc->group;
	uint64_t before = begin(self);

	wf_spin_lock(&g->lock);
	wf_list_remove(&sc->link);
	sc->group = NULL;
	g->nr--;
	wake(self, g, g->nr);
	/* The last word about g: whoever closes it takes the lock first. */
	wf_spin_unlock(&g->lock);
	end(self, before);
}

void wf_group_help(struct wf_thread *self, struct wf_scopes *sc, struct wf_scopes *forker,
		   struct wf_scope *s)
{
	uint64_t before = begin(self);

	wf_spin_lock(&forker->lock);
	sc->helps = forker;
	wf_scopes_set_base(sc, s);
	wf_list_push_tail(&forker->helpers, &sc->link);
	/* As in wf_group_join(). */
	wf_store_relaxed(&sc->is_told, 1u);
	wf_spin_unlock(&forker->lock);
	end(self, before);
}

void wf_group_help_no_more(struct wf_thread *self, struct wf_scopes *sc)
{
	struct wf_scopes *forker = sc->helps;
	uint64_t before;

	if (!forker) /* the task forked a process, and this is the child's copy: the forker is not there */
		return;
	before = begin(self);
	wf_spin_lock(&forker->lock);
	wf_list_remove(&sc->link);
	sc->helps = NULL;
	wf_spin_unlock(&forker->lock);
	wf_scopes_set_base(sc, NULL);
	wf_store_relaxed(&sc->is_told, 1u);
	end(self, before);
}

bool wf_group_report(struct wf_thread *self, struct wf_group *g, int result, unsigned policy)
{
	uint64_t before = begin(self);
	bool cancels = false;

	wf_spin_lock(&g->lock);
	if (result < 0 && !g->error)
		g->error = result;
	g->has_success |= result >= 0;
	if (policy == WF_GROUP_ALL ? g->error : policy == WF_GROUP_ANY && g->has_success) {
		cancels = !g->is_cancelled;
		g->is_cancelled = true;
	}
	wf_spin_unlock(&g->lock);
	end(self, before);
	return cancels;
}

int64_t wf_group_look_ns = WF_NEVER;

/* self is NULL. Whatever comes changes the bell after it was read. */
static bool sleep_natively(struct wf_scopes *sc, uint32_t bell, int64_t until)
{
	const bool looks = wf_group_look_ns != WF_NEVER;
	const int64_t most = looks ? WF_MIN(until, sys_now() + wf_group_look_ns) : until;
	struct __kernel_timespec at = { most / WF_SEC, most % WF_SEC };
	long ret;

	wf_store_relaxed(&sc->wait_word, &sc->bell);
	ret = sys6(__NR_futex, &sc->bell, FUTEX_WAIT_BITSET_PRIVATE, bell,
		   most == WF_NEVER ? NULL : &at, NULL, FUTEX_BITSET_MATCH_ANY);
	wf_store_relaxed(&sc->wait_word, NULL);
	return ret == -ETIMEDOUT && most == until;
}

/* On the list, without the lock. False: the time is over. */
static bool sleep_on(struct wf_thread *self, struct wf_scopes *sc, uint32_t bell, int64_t until,
		     bool is_reached)
{
	if (!self) {
		if (is_reached && wf_scopes_are_over(sc))
			return true;
		return !sleep_natively(sc, bell, is_reached ? WF_MIN(until, sc->until) : until) ||
		       (is_reached && sc->until <= until);
	}
	return wf_park(until) != WF_WAKE_TIMEOUT;
}

static int wait_once(struct wf_thread *self, struct wf_scopes *sc, struct wf_group *g,
		     uint32_t at_most, int64_t until, bool is_reached)
{
	struct wf_group_waiter w = { .sc = sc, .at_most = at_most };
	bool is_met, is_in_time;
	uint32_t bell = wf_load_seq_cst(&sc->bell);
	uint64_t before = begin_quiet(self);
	int error = 0;

	if (self)
		wf_park_begin_before_lock(is_reached ? WF_INTR | WF_REACHED : WF_INTR,
					  WF_WAIT_GROUP, (uint64_t)g);
	wf_spin_lock(&g->lock);
	is_met = g->nr <= at_most;
	if (!is_met)
		wf_list_push_tail(&g->waiters, &w.link);
	wf_spin_unlock(&g->lock);
	end_quiet(self, before);
	if (is_met) {
		if (self)
			(void)wf_park_abort();
		return 0;
	}
	is_in_time = sleep_on(self, sc, bell, until, is_reached);
	before = begin_quiet(self);
	wf_spin_lock(&g->lock);
	wf_list_remove(&w.link);
	is_met = g->nr <= at_most;
	wf_spin_unlock(&g->lock);
	end_quiet(self, before);
	if (is_met)
		return 0;
	if (is_reached)
		error = wf_scopes_end(sc, WF_SCOPE_BY_GROUP, 0);
	if (error)
		return error;
	return is_in_time ? -EINTR : -ETIMEDOUT;
}

int wf_group_wait(struct wf_thread *self, struct wf_scopes *sc, struct wf_group *g,
		  uint32_t at_most, int64_t until, bool is_reached)
{
	int ret;

	wf_self_enter(self);
	ret = wait_once(self, sc, g, at_most, until, is_reached);
	wf_self_leave(self);
	return ret;
}

const char *wf_group_in(struct wf_thread *self, struct wf_scopes *sc, const struct wf_scope *s)
{
	uint64_t before = begin(self);
	const char *name = NULL;

	wf_spin_lock(&sc->lock);
	for (struct wf_list *l = sc->groups.next; l != &sc->groups && !name; l = l->next) {
		const struct wf_group *g = container_of(l, struct wf_group, link);

		if (!s || g->scope.outer == s)
			name = g->scope.name ? g->scope.name : "";
	}
	wf_spin_unlock(&sc->lock);
	end(self, before);
	return name;
}

const char *wf_group_lost(struct wf_thread *self, struct wf_scopes *sc)
{
	uint64_t before = begin(self);
	const char *name = NULL;

	wf_spin_lock(&sc->lock);
	for (struct wf_list *l = sc->groups.next; l != &sc->groups && !name; l = l->next) {
		const struct wf_group *g = container_of(l, struct wf_group, link);
		struct wf_scope *s = wf_scopes_top_of(sc);

		while (s && s != g->scope.outer)
			s = wf_scopes_outer_of(sc, s);
		if (s != g->scope.outer)
			name = g->scope.name ? g->scope.name : "";
	}
	wf_spin_unlock(&sc->lock);
	end(self, before);
	return name;
}
