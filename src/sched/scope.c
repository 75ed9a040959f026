// SPDX-License-Identifier: Apache-2.0
/* Scopes: which are over, and what a wait goes by; see scope.h. */
#include "sched/scope.h"
#include "sched/clock.h"
#include "sched/fibers.h"
#include "sched/runtime.h"
#include "sched/tasks.h"

#include <linux/futex.h>

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

/* A futex that does not wait. Where it cannot be one there is no scope, either. */
static bool is_word(const uint32_t *word)
{
	const struct __kernel_timespec none = { 0 };
	long ret = sys6(__NR_futex, word, FUTEX_WAIT_PRIVATE, 0, &none, NULL, 0);

	return ret != -EFAULT && ret != -EINVAL;
}

/* Of one that was overwritten in part, what it says lies in it may lie nowhere. */
static bool is_there(const struct wf_scope *s)
{
	return is_word((const uint32_t *)s) && is_word((const uint32_t *)(s + 1) - 1);
}

static WF_NOINLINE struct wf_scope *find_from_outside(struct wf_scopes *sc)
{
	struct wf_scope *s = sc->base;

	while (s != sc->top) {
		struct wf_scope *inner = *wf_scopes_inner_of(sc, s);

		if (!is_there(inner) || !wf_scope_is_sound(sc, inner) || inner->outer != s)
			break;
		s = inner;
	}
	return s;
}

void wf_scopes_set_top(struct wf_scopes *sc, struct wf_scope *s)
{
	sc->top = s;
	sc->until = s ? s->until : WF_NEVER;
	wf_store_relaxed(&sc->is_told, 1u);
}

struct wf_scope *wf_scopes_top_of(struct wf_scopes *sc)
{
	if (sc->top != sc->base && !wf_scope_is_sound(sc, sc->top))
		wf_scopes_set_top(sc, find_from_outside(sc));
	return sc->top;
}

struct wf_scope *wf_scopes_outer_of(struct wf_scopes *sc, struct wf_scope *s)
{
	struct wf_scope *outer = s->outer;

	if (WF_LIKELY(s->owner != sc || outer == sc->base || wf_scope_is_sound(sc, outer)))
		return outer;
	outer = find_from_outside(sc);
	/* Only what the check covers is written to: what was left without our notice may lie where a frame of ours does. */
	s->outer = outer;
	s->check = wf_scope_check_of(s);
	return outer;
}

struct wf_scope *wf_scopes_prune(struct wf_scopes *sc, uintptr_t sp, const struct wf_scope *fresh)
{
	struct wf_scope *s = wf_scopes_top_of(sc);

	while (s != sc->base) {
		if (!is_below(sc, sp, s) && !(fresh && overlap(s, fresh)))
			break;
		/* A group hangs on it: whoever opens or closes the next says so. */
		if (!fresh && wf_load_relaxed(&s->state) & WF_SCOPE_HAS_GROUPS)
			break;
		s = wf_scopes_outer_of(sc, s);
	}
	if (s != sc->top)
		wf_scopes_set_top(sc, s);
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
	int64_t now, until = WF_NEVER;

	if (sc->until == WF_NEVER)
		return false;
	now = sc->now();
	if (sc->until > now)
		return false;
	for (struct wf_scope *s = wf_scopes_top_of(sc); s; s = next_of(sc, s))
		until = WF_MIN(until, s->deadline);
	sc->until = until;
	return until <= now;
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
	wf_store_relaxed(&s->ended_nr, (uint16_t)nr);
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
	if (!outermost)
		return 0;
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
	const struct wf_scope *top = sc->top;
	int64_t until;

	*out_until = WF_NEVER;
	if (top && WF_UNLIKELY(is_below(sc, (uintptr_t)__builtin_frame_address(0), top)))
		top = wf_scopes_prune(sc, (uintptr_t)__builtin_frame_address(0), NULL);
	if (!top)
		return false;
	until = sc->until;
	if (WF_UNLIKELY(sc->in_once)) {
		until = wf_scopes_until_once(sc);
		if (!until)
			return true;
	} else if (WF_UNLIKELY(was_told(sc))) {
		return true;
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
