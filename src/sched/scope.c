// SPDX-License-Identifier: Apache-2.0
/* Scopes: which are over, and what a wait goes by; see scope.h. */
#include "sched/scope.h"
#include "sched/clock.h"
#include "sched/fibers.h"
#include "sched/runtime.h"
#include "sched/tasks.h"

struct wf_scopes *wf_scopes_of_main;
struct wf_tasks *wf_tasks_all;
struct wf_fibers *wf_fibers_all;

_Static_assert(sizeof(struct wf_scope) == 64, "weft_scope of include/weft/scope.h");

void wf_scopes_init(struct wf_scopes *sc, struct wf_thread *thread)
{
	*sc = (struct wf_scopes){
		.until = WF_NEVER,
		.armed = WF_NEVER,
		.thread = thread,
		.now = thread ? wf_now : sys_now,
		.is_ready = true,
		.stack_low = sc->stack_low,
		.stack_high = sc->stack_high,
	};
	wf_list_init(&sc->groups);
	wf_list_init(&sc->helpers);
	wf_list_init(&sc->link);
}

void wf_scopes_adopt(struct wf_scopes *sc, struct wf_thread *thread)
{
	sc->thread = thread;
	sc->now = wf_now;
}

void wf_scopes_forget(struct wf_scopes *sc)
{
	sc->thread = NULL;
	sc->now = sys_now;
	sc->armed = WF_NEVER;
	sc->timer = (struct wf_timer){ 0 };
	sc->in_call = 0;
	sc->lock = (struct wf_spin){ 0 };
	sc->group = NULL;
	sc->helps = NULL;
	sc->is_told = 1;
	wf_list_init(&sc->groups);
	wf_list_init(&sc->helpers);
	wf_list_init(&sc->link);
}

static bool overlap(const struct wf_scope *a, const struct wf_scope *b)
{
	return (uintptr_t)a - (uintptr_t)b + sizeof(*a) - 1 < 2 * sizeof(*a) - 1;
}

static bool is_below(const struct wf_scopes *sc, uintptr_t sp, const struct wf_scope *s)
{
	uintptr_t bytes = sc->stack_high - sc->stack_low;

	return sp - sc->stack_low < bytes && (uintptr_t)s - sc->stack_low < sp - sc->stack_low;
}

/* Where a scope was there may be no memory by now. The kernel says so of a mask that it cannot read. */
static bool is_there(const struct wf_scope *s)
{
	const long no_way = -1;

	return sys4(__NR_rt_sigprocmask, no_way, s, NULL, 8) != -EFAULT &&
	       sys4(__NR_rt_sigprocmask, no_way, &s->check, NULL, 8) != -EFAULT;
}

static struct wf_scope *find(const struct wf_scopes *sc, uint32_t nr)
{
	for (uint32_t i = WF_MIN(nr, (uint32_t)WF_SCOPES_NOTED); i-- > 0;)
		if (is_there(sc->noted[i]) && wf_scope_is_sound(sc, sc->noted[i]))
			return sc->noted[i];
	return sc->base;
}

static uint32_t nr_noted(const struct wf_scopes *sc)
{
	return WF_MIN(sc->nr_open, (uint32_t)WF_SCOPES_NOTED);
}

uint32_t wf_scopes_place_of(const struct wf_scopes *sc, const struct wf_scope *s)
{
	const uint32_t nr = nr_noted(sc);

	for (uint32_t i = nr; i-- > 0;)
		if (sc->noted[i] == s)
			return i;
	return nr;
}

void wf_scopes_set_top(struct wf_scopes *sc, struct wf_scope *s, uint32_t nr_open)
{
	sc->top = s;
	sc->nr_open = nr_open;
	sc->until = s ? s->until : WF_NEVER;
	wf_store_relaxed(&sc->is_told, 1u);
}

void wf_scopes_cut(struct wf_scopes *sc, struct wf_scope *s)
{
	uint32_t nr_deeper = 0;

	for (const struct wf_scope *at = s; at && at != sc->base; at = wf_scopes_outer_of(sc, at)) {
		const uint32_t place = wf_scopes_place_of(sc, at);

		if (place < nr_noted(sc)) {
			wf_scopes_set_top(sc, s, place + 1 + nr_deeper);
			return;
		}
		nr_deeper++;
	}
	wf_scopes_set_top(sc, s, nr_deeper);
}

struct wf_scope *wf_scopes_find_top(struct wf_scopes *sc)
{
	wf_scopes_cut(sc, find(sc, sc->nr_open ? sc->nr_open - 1 : 0));
	return sc->top;
}

struct wf_scope *wf_scopes_outer_of(struct wf_scopes *sc, const struct wf_scope *s)
{
	struct wf_scope *outer = s->outer;

	if (s->owner != sc)
		return wf_scope_outer_of(s);
	if (WF_LIKELY(!outer || outer == sc->base || wf_scope_is_sound(sc, outer)))
		return outer;
	return find(sc, wf_scopes_place_of(sc, s));
}

struct wf_scope *wf_scope_outer_of(const struct wf_scope *s)
{
	const struct wf_scopes *owner = wf_load_relaxed(&s->owner);
	struct wf_scope *outer = wf_load_relaxed(&s->outer);

	if (!owner || !outer || outer == owner->base || wf_load_relaxed(&outer->owner) == owner)
		return outer;
	return s == owner->ground ? owner->base : wf_load_relaxed(&owner->ground);
}

/* The innermost one that does not lie where fresh does, nor in one that does: what was opened in what was left, was left, too. */
static struct wf_scope *find_around(struct wf_scopes *sc, const struct wf_scope *fresh)
{
	struct wf_scope *top = wf_scopes_top_of(sc);

	for (uint32_t i = 0; i < nr_noted(sc); i++)
		if (overlap(sc->noted[i], fresh))
			return find(sc, i);
	if (sc->nr_open > WF_SCOPES_NOTED)
		for (struct wf_scope *s = top; s && s != sc->base; s = wf_scopes_outer_of(sc, s))
			if (overlap(s, fresh))
				top = wf_scopes_outer_of(sc, s);
	return top;
}

struct wf_scope *wf_scopes_prune(struct wf_scopes *sc, uintptr_t sp, const struct wf_scope *fresh)
{
	struct wf_scope *s = fresh ? find_around(sc, fresh) : wf_scopes_top_of(sc);

	while (s && s != sc->base) {
		if (!is_below(sc, sp, s))
			break;
		/* A group hangs on it: whoever opens or closes the next says so. */
		if (!fresh && wf_load_relaxed(&s->state) & WF_SCOPE_HAS_GROUPS)
			break;
		s = wf_scopes_outer_of(sc, s);
	}
	if (s != sc->top)
		wf_scopes_cut(sc, s);
	return s;
}

/* In order behind the store to is_told in was_told(); and what the canceller has done before is seen. */
static bool is_cancelled(const struct wf_scope *s)
{
	return wf_load_seq_cst(&s->state) & WF_SCOPE_CANCELLED;
}

/* The next one outwards that reaches in, or NULL. */
static struct wf_scope *next_of(struct wf_scopes *sc, struct wf_scope *s)
{
	return wf_load_relaxed(&s->state) & WF_SCOPE_SHIELD ? NULL : wf_scopes_outer_of(sc, s);
}

static bool is_late(const struct wf_scope *s, int64_t *now, const struct wf_scopes *sc)
{
	if (s->deadline == WF_NEVER)
		return false;
	if (!*now)
		*now = sc->now();
	return s->deadline <= *now;
}

void wf_scopes_renew_until(struct wf_scopes *sc)
{
	int64_t until = WF_NEVER;

	for (struct wf_scope *s = wf_scopes_top_of(sc); s; s = next_of(sc, s))
		until = WF_MIN(until, s->deadline);
	sc->until = until;
}

int wf_scope_error_of(struct wf_scopes *sc, struct wf_scope *s)
{
	int64_t now = 0;
	int error = 0;

	for (; s; s = next_of(sc, s)) {
		if (is_cancelled(s))
			return -ECANCELED;
		if (!error && is_late(s, &now, sc))
			error = -ETIMEDOUT;
	}
	return error;
}

static bool has_cancelled(struct wf_scopes *sc)
{
	struct wf_scope *s = wf_scopes_top_of(sc);

	while (s && !is_cancelled(s))
		s = next_of(sc, s);
	return s;
}

static bool was_told(struct wf_scopes *sc)
{
	if (!wf_load_seq_cst(&sc->is_told))
		return false;
	if (has_cancelled(sc))
		return true;
	/* Before the next look: pairs with the canceller's mark, which comes before its exchange. */
	wf_store_seq_cst(&sc->is_told, 0u);
	if (!has_cancelled(sc))
		return false;
	wf_store_relaxed(&sc->is_told, 1u);
	return true;
}

/* The earliest deadline may be that of one that was left, and is not there any more. */
static bool is_past(struct wf_scopes *sc)
{
	if (sc->until == WF_NEVER || sc->until > sc->now())
		return false;
	wf_scopes_renew_until(sc);
	return sc->until <= sc->now();
}

bool wf_scopes_are_over(struct wf_scopes *sc)
{
	if (!sc->top)
		return false;
	if (was_told(sc))
		return true;
	/* While the timer is armed for that moment or an earlier one, it has not come. */
	return wf_load_seq_cst(&sc->armed) > sc->until && is_past(sc);
}

static void note_end(struct wf_scope *s, uint32_t nr, uint64_t what)
{
	wf_store_relaxed(&s->ended_nr, nr);
	wf_store_relaxed(&s->ended_what, what);
	(void)wf_fetch_or(&s->state, WF_SCOPE_HAS_ENDED);
}

int wf_scopes_end(struct wf_scopes *sc, uint32_t nr, uint64_t what)
{
	struct wf_scope *outermost = NULL;
	bool any_cancelled = false;
	int64_t now = 0;

	for (struct wf_scope *s = wf_scopes_top_of(sc); s; s = next_of(sc, s)) {
		bool cancelled = is_cancelled(s);

		any_cancelled |= cancelled;
		if (cancelled || is_late(s, &now, sc))
			outermost = s;
	}
	if (!outermost) {
		wf_scopes_renew_until(sc);
		return 0;
	}
	note_end(outermost, nr, what);
	return any_cancelled ? -ECANCELED : -ETIMEDOUT;
}

/* Scopes of others are in use by many threads, and a thread counts for itself which of them have ended a wait. */
static bool is_used(const struct wf_scopes *sc, const struct wf_scope *s)
{
	if (s->owner == sc)
		return wf_load_relaxed(&s->state) & WF_SCOPE_ONCE;
	return sc->base_once & (is_cancelled(s) ? 2 : 1);
}

static void use(struct wf_scopes *sc, struct wf_scope *s)
{
	if (s->owner == sc)
		(void)wf_fetch_or(&s->state, WF_SCOPE_ONCE);
	else
		sc->base_once |= is_cancelled(s) ? 2 : 1;
}

int64_t wf_scopes_until_once(struct wf_scopes *sc)
{
	int64_t until = WF_NEVER;

	for (struct wf_scope *s = wf_scopes_top_of(sc); s; s = next_of(sc, s)) {
		if (is_used(sc, s))
			continue;
		if (is_cancelled(s))
			return 0;
		until = WF_MIN(until, s->deadline);
	}
	return until;
}

bool wf_scopes_end_once(struct wf_scopes *sc, uint32_t nr, uint64_t what)
{
	struct wf_scope *outermost = NULL;
	int64_t now = 0;

	for (struct wf_scope *s = wf_scopes_top_of(sc); s; s = next_of(sc, s))
		if (!is_used(sc, s) && (is_cancelled(s) || is_late(s, &now, sc)))
			outermost = s;
	if (!outermost)
		return false;
	note_end(outermost, nr, what);
	for (struct wf_scope *s = wf_scopes_top_of(sc); s; s = next_of(sc, s))
		if (is_cancelled(s) || is_late(s, &now, sc))
			use(sc, s);
	return true;
}

bool wf_scopes_begin_wait(struct wf_scopes *sc, int64_t *out_until)
{
	const uintptr_t sp = (uintptr_t)__builtin_frame_address(0);
	const struct wf_scope *top = wf_scopes_top_of(sc);
	int64_t until;

	*out_until = WF_NEVER;
	if (top && WF_UNLIKELY(is_below(sc, sp, top)))
		top = wf_scopes_prune(sc, sp, NULL);
	if (!top)
		return false;
	if (WF_UNLIKELY(sc->in_once)) {
		until = wf_scopes_until_once(sc);
		if (!until)
			return true;
	} else if (WF_UNLIKELY(was_told(sc))) {
		return true;
	} else {
		until = sc->until;
	}
	if (until == WF_NEVER || wf_load_seq_cst(&sc->armed) <= until)
		return false;
	if (until <= sc->now()) {
		if (sc->in_once || is_past(sc))
			return true;
		until = sc->until;
	}
	*out_until = until;
	return false;
}
