// SPDX-License-Identifier: Apache-2.0
/* Hierarchical timer wheel; see wheel.h. */
#include "sched/wheel.h"
#include "base/die.h"

/* entries read to find a far slot's exact minimum; beyond, its beginning will do */
#define SCAN_LIMIT 32
#define FIRE_AT_ONCE 32 /* about 2 us */

void wf_wheel_init(struct wf_wheel *w, int64_t now)
{
	*w = (struct wf_wheel){ .tick = now >> WF_WHEEL_SHIFT, .next = WF_NEVER };
	for (unsigned l = 0; l < WF_WHEEL_LEVELS; l++)
		for (unsigned s = 0; s < WF_WHEEL_SLOTS; s++)
			wf_list_init(&w->slots[l][s]);
}

/* The level is the highest group of six bits in which the deadline's tick differs from the current one. */
static void place(struct wf_wheel *w, struct wf_timer *t)
{
	int64_t tick = WF_MAX(t->deadline >> WF_WHEEL_SHIFT, w->tick);
	uint64_t differ = (uint64_t)(tick ^ w->tick);
	unsigned level = differ ? (63u - (unsigned)__builtin_clzl(differ)) / WF_WHEEL_BITS : 0;
	unsigned slot = (unsigned)(tick >> (level * WF_WHEEL_BITS)) & (WF_WHEEL_SLOTS - 1);

	t->level = (uint8_t)level;
	t->slot = (uint8_t)slot;
	wf_list_push_tail(&w->slots[level][slot], &t->link);
	w->used[level] |= 1ul << slot;
}

/* When a slot that lies in the future begins. */
static int64_t slot_begin(const struct wf_wheel *w, unsigned level, unsigned slot)
{
	unsigned shift = (level + 1) * WF_WHEEL_BITS;
	int64_t base = level + 1 == WF_WHEEL_LEVELS ? 0 : w->tick >> shift << shift;

	return base + ((int64_t)slot << (level * WF_WHEEL_BITS));
}

/*
 * The earliest deadline in the first slot of a level that is used; a level's slots never wrap, since place()
 * goes by differing bits. A crowded slot far away is not read: it is looked at again when it begins, and its
 * timers move to lower levels. The lowest level is always read, as fire_slot() does.
 */
static int64_t earliest_in(struct wf_wheel *w, unsigned level)
{
	while (w->used[level]) {
		unsigned slot = (unsigned)__builtin_ctzl(w->used[level]);
		struct wf_list *head = &w->slots[level][slot], *n, *tmp;
		int64_t best = WF_NEVER;
		int seen = 0;

		if (wf_list_is_empty(head)) {
			w->used[level] &= ~(1ul << slot);
			continue;
		}
		wf_list_for_each_safe (n, tmp, head) {
			best = WF_MIN(best, container_of(n, struct wf_timer, link)->deadline);
			if (level && ++seen == SCAN_LIMIT)
				return slot_begin(w, level, slot) << WF_WHEEL_SHIFT;
		}
		return best;
	}
	return WF_NEVER;
}

/* Every timer of a level fires before every timer of the levels above: they differ in higher bits. */
static void refresh_next(struct wf_wheel *w)
{
	int64_t next = WF_NEVER;

	for (unsigned l = 0; l < WF_WHEEL_LEVELS && next == WF_NEVER; l++)
		next = earliest_in(w, l);
	wf_store_seq_cst(&w->next, next);
}

bool wf_wheel_add(struct wf_wheel *w, struct wf_timer *t, int64_t deadline)
{
	bool is_first;

	wf_spin_lock(&w->lock);
	WF_ASSERT(!t->armed);
	t->deadline = deadline;
	t->armed = true;
	place(w, t);
	wf_store_relaxed(&w->nr, w->nr + 1);
	is_first = deadline < w->next;
	if (is_first)
		wf_store_seq_cst(&w->next, deadline);
	wf_spin_unlock(&w->lock);
	return is_first;
}

void wf_wheel_cancel(struct wf_wheel *w, struct wf_timer *t)
{
	wf_spin_lock(&w->lock);
	if (t->armed) {
		t->armed = false;
		wf_list_remove(&t->link);
		wf_store_relaxed(&w->nr, w->nr - 1);
		if (!w->nr)
			wf_store_seq_cst(&w->next, WF_NEVER);
	}
	wf_spin_unlock(&w->lock);
}

/* Stops after max: the lock is not to be held for long. */
static int fire_slot(struct wf_wheel *w, struct wf_list *slot, int64_t now, int max)
{
	struct wf_list *n, *tmp;
	int fired = 0;

	wf_list_for_each_safe (n, tmp, slot) {
		struct wf_timer *t = container_of(n, struct wf_timer, link);

		if (t->deadline > now)
			continue;
		wf_list_remove(&t->link);
		t->armed = false;
		wf_store_relaxed(&w->nr, w->nr - 1);
		t->fire(t);
		if (++fired == max)
			break;
	}
	return fired;
}

/* Moves time to tick, where every skipped slot is known to be empty or fired, and re-places what comes near. */
static void advance_to(struct wf_wheel *w, int64_t tick)
{
	uint64_t changed = (uint64_t)(tick ^ w->tick);

	w->tick = tick;
	for (unsigned l = WF_WHEEL_LEVELS - 1; l > 0; l--) {
		unsigned slot = (unsigned)(tick >> (l * WF_WHEEL_BITS)) & (WF_WHEEL_SLOTS - 1);
		struct wf_list moved, *n;

		if (!(changed >> (l * WF_WHEEL_BITS)) || wf_list_is_empty(&w->slots[l][slot]))
			continue;
		wf_list_init(&moved);
		wf_list_splice_tail(&moved, &w->slots[l][slot]);
		w->used[l] &= ~(1ul << slot);
		while ((n = wf_list_pop_head(&moved)))
			place(w, container_of(n, struct wf_timer, link));
	}
}

/* The next tick after w->tick, at most limit, at which a slot must be looked at. */
static int64_t next_used_tick(struct wf_wheel *w, int64_t limit)
{
	for (unsigned l = 0; l < WF_WHEEL_LEVELS; l++) {
		unsigned cur = (unsigned)(w->tick >> (l * WF_WHEEL_BITS)) & (WF_WHEEL_SLOTS - 1);
		uint64_t later = cur == WF_WHEEL_SLOTS - 1 ? 0 : w->used[l] & (~0ul << (cur + 1));

		if (later) {
			unsigned slot = (unsigned)__builtin_ctzl(later);
			return WF_MIN(slot_begin(w, l, slot), limit);
		}
	}
	return limit;
}

int wf_wheel_expire(struct wf_wheel *w, int64_t now)
{
	int64_t now_tick = now >> WF_WHEEL_SHIFT;
	int fired = 0, some;

	if (now < wf_load_relaxed(&w->next))
		return 0;
	wf_spin_lock(&w->lock);
	for (;;) {
		some = fire_slot(w, &w->slots[0][w->tick & (WF_WHEEL_SLOTS - 1)], now,
				 FIRE_AT_ONCE);
		fired += some;
		if (some == FIRE_AT_ONCE) {
			/* Let others in. Another one that expires now finds a state that is as good as ours. */
			wf_spin_unlock(&w->lock);
			wf_spin_lock(&w->lock);
			continue;
		}
		if (w->tick >= now_tick)
			break;
		advance_to(w, next_used_tick(w, now_tick));
	}
	refresh_next(w);
	wf_spin_unlock(&w->lock);
	return fired;
}
