// SPDX-License-Identifier: Apache-2.0
/* The run queue; see runq.h. */
#include "sched/runq.h"
#include "base/die.h"
#include "sched/runtime.h"

/* who has run that much more than others waits for them */
#define HANDOFF_AHEAD (WF_BLOCK_SLOTS << WF_SLOT_SHIFT)
#define STEAL_MAX 32 /* thieves come back; a bigger haul needs a bigger stack */
#define LOOKS_MAX 8  /* how many a thief passes over, under its victim's lock */

static void lock(struct wf_runq *q)
{
	if (!q->is_private)
		wf_spin_lock(&q->lock);
}

static void unlock(struct wf_runq *q)
{
	if (!q->is_private)
		wf_spin_unlock(&q->lock);
}

/* A thread comes or leaves. */
static void count(struct wf_runq *q, const struct wf_thread *t, int by)
{
	wf_store_relaxed(&q->nr, wf_runq_nr(q) + (uint32_t)by);
	if (!q->is_private && wf_thread_is_beside_peer(t))
		wf_store_relaxed(&q->nr_beside_peer, q->nr_beside_peer + (uint32_t)by);
}

static void append_to(struct wf_level *l, struct wf_thread *t)
{
	t->next = NULL;
	if (l->tail)
		l->tail->next = t;
	else
		l->head = t;
	l->tail = t;
}

static struct wf_thread *take_from(struct wf_level *l)
{
	struct wf_thread *t = l->head;

	l->head = t->next;
	if (!l->head)
		l->tail = NULL;
	return t;
}

/*
 * The cost of a time, with 16 bits of fraction: the inverse of the kernel's weights, 1.25 times as much for each step of
 * nice.
 */
#define COST(weight) ((1u << 16) * 1024u / (weight))

static const uint32_t cost[WF_LEVELS] = {
	COST(88761), COST(71755), COST(56483), COST(46273), COST(36291), COST(29154), COST(23254),
	COST(18705), COST(14949), COST(11916), COST(9548),  COST(7620),  COST(6100),  COST(4904),
	COST(3906),  COST(3121),  COST(2501),  COST(1991),  COST(1586),  COST(1277),  COST(1024),
	COST(820),   COST(655),   COST(526),   COST(423),   COST(335),   COST(272),   COST(215),
	COST(172),   COST(137),   COST(110),   COST(87),    COST(70),    COST(56),    COST(45),
	COST(36),    COST(29),    COST(23),    COST(18),    COST(15),
};

_Static_assert(WF_NEAR == 4 && WF_FAR == 128, "the maps");

void wf_runq_charge(struct wf_thread *t, uint64_t ran)
{
	unsigned level = wf_load_relaxed(&t->level); /* once: others may change it at any time */

	if (WF_UNLIKELY(level != WF_LEVEL_NORMAL))
		ran = (ran * cost[level]) >> 16;
	t->vtime += ran;
}

static uint64_t block_of(uint64_t slot)
{
	return slot / WF_BLOCK_SLOTS;
}

static struct wf_level *near_at(struct wf_runq *q, uint64_t slot)
{
	return &q->near[slot % (WF_NEAR * WF_BLOCK_SLOTS)];
}

static void set_now(struct wf_runq *q, uint64_t slot)
{
	wf_store_relaxed(&q->now, slot);
}

static void append_at(struct wf_runq *q, struct wf_thread *t, uint64_t slot)
{
	uint64_t block = block_of(slot), ahead = block - block_of(q->now);

	if (ahead < WF_NEAR) {
		append_to(near_at(q, slot), t);
		q->near_map[block % WF_NEAR] |= 1ul << slot % WF_BLOCK_SLOTS;
		return;
	}
	if (ahead >= WF_FAR)
		block -= ahead - (WF_FAR - 1);
	block %= WF_FAR;
	append_to(&q->far[block], t);
	q->far_map[block / 64] |= 1ul << block % 64;
}

/* Beyond everything that can be owed: the clock of a thread that slept for weeks has gone round. */
#define AHEAD_MAX (1l << 40)

/* True: t's time is that of the slot that is served, or before. */
static bool settle(struct wf_runq *q, struct wf_thread *t, uint64_t *out_slot)
{
	int64_t ahead = wf_runq_ahead(q, t);

	if (ahead < 0 || ahead > AHEAD_MAX) {
		t->vtime = q->now << WF_SLOT_SHIFT;
		ahead = 0;
	}
	*out_slot = q->now + ((uint64_t)ahead >> WF_SLOT_SHIFT);
	return *out_slot == q->now;
}

static void append(struct wf_runq *q, struct wf_thread *t)
{
	uint64_t slot;

	(void)settle(q, t, &slot);
	append_at(q, t, slot);
}

static void append_woken(struct wf_runq *q, struct wf_thread *t)
{
	uint64_t slot;

	if (settle(q, t, &slot))
		append_to(&q->woken, t);
	else
		append_at(q, t, slot);
}

/* A far block has come near: its threads go to their slots. */
static void spill(struct wf_runq *q, uint64_t block)
{
	struct wf_level *l = &q->far[block % WF_FAR];
	struct wf_thread *t = l->head;

	if (!t)
		return;
	*l = (struct wf_level){ 0 };
	q->far_map[block % WF_FAR / 64] &= ~(1ul << block % 64);
	while (t) {
		struct wf_thread *next = t->next;

		append(q, t);
		t = next;
	}
}

/* Nobody's time comes before that slot. Those who are in a block before it all the same are to come later. */
static void advance(struct wf_runq *q, uint64_t to)
{
	uint64_t first = block_of(q->now) + WF_NEAR, end = block_of(to) + WF_NEAR;

	set_now(q, to);
	end = WF_MIN(end, first + WF_FAR);
	for (uint64_t b = first; b < end; b++)
		spill(q, b);
}

/* The first slot with somebody, among those that are near. */
static bool first_near(const struct wf_runq *q, uint64_t *out_slot)
{
	uint64_t block = block_of(q->now);

	for (uint64_t b = block; b < block + WF_NEAR; b++) {
		uint64_t map = q->near_map[b % WF_NEAR];

		if (!map)
			continue;
		*out_slot = b * WF_BLOCK_SLOTS + (uint64_t)__builtin_ctzl(map);
		return true;
	}
	return false;
}

/* The first block with somebody, beyond those. */
static bool first_far(const struct wf_runq *q, uint64_t *out_block)
{
	uint64_t block = block_of(q->now);

	if (!(q->far_map[0] | q->far_map[1]))
		return false;
	for (uint64_t b = block + WF_NEAR; b < block + WF_FAR;) {
		uint64_t map = q->far_map[b % WF_FAR / 64] >> b % 64;

		if (map) {
			*out_block = b + (uint64_t)__builtin_ctzl(map);
			return true;
		}
		b += 64 - b % 64;
	}
	return false;
}

/* l, of near or far, may have become empty. */
static void tidy(struct wf_runq *q, const struct wf_level *l)
{
	size_t i;

	if (l->head || l == &q->woken)
		return;
	if (l >= q->near && l < q->near + ARRAY_LEN(q->near)) {
		i = (size_t)(l - q->near);
		q->near_map[i / WF_BLOCK_SLOTS] &= ~(1ul << i % WF_BLOCK_SLOTS);
	} else {
		i = (size_t)(l - q->far);
		q->far_map[i / 64] &= ~(1ul << i % 64);
	}
}

static struct wf_thread *take_first(struct wf_runq *q, struct wf_level *l)
{
	struct wf_thread *t = take_from(l);

	tidy(q, l);
	return t;
}

/*
 * Of a thousand threads that take turns of microseconds each has left the caches when its turn comes: what it will need
 * first is on its way while another runs.
 */
#define FRAMES_BYTES 640u /* from the switch to the function that made the call */

static struct wf_thread *take_and_prepare(struct wf_runq *q, struct wf_level *l)
{
	struct wf_thread *t = take_first(q, l), *next = l->head, *after;

	/* Two turns ahead: memory takes longer than one. Its own structure came while we prepared the one before it. */
	if (next && next->next)
		next = next->next;
	if (next) {
		for (unsigned i = 0; i < FRAMES_BYTES; i += WF_CACHE_LINE)
			__builtin_prefetch((char *)next->sp + i);
		__builtin_prefetch((void *)next->tls);
		after = next->next;
		if (after) {
			__builtin_prefetch(after);
			__builtin_prefetch(&after->nr_switches);
		}
	}
	return t;
}

static struct wf_thread *take_queued(struct wf_runq *q)
{
	uint64_t slot, block;

	if (q->woken.head)
		return take_and_prepare(q, &q->woken);
	while (!first_near(q, &slot)) {
		if (!first_far(q, &block))
			return NULL;
		advance(q, block * WF_BLOCK_SLOTS);
	}
	advance(q, slot);
	return take_and_prepare(q, near_at(q, slot));
}

/* The last slot with somebody, blocks beyond last not looked at, and of far ones the end. now: there is none. */
static uint64_t last_slot(const struct wf_runq *q, uint64_t last)
{
	uint64_t block = block_of(q->now);

	if (q->far_map[0] | q->far_map[1])
		for (uint64_t b = WF_MIN(last, block + WF_FAR - 1); b >= block + WF_NEAR; b--)
			if (q->far_map[b % WF_FAR / 64] >> b % 64 & 1)
				return b * WF_BLOCK_SLOTS + WF_BLOCK_SLOTS - 1;
	for (uint64_t b = block + WF_NEAR; b-- > block;) {
		uint64_t map = q->near_map[b % WF_NEAR];

		if (map)
			return b * WF_BLOCK_SLOTS + 63 - (uint64_t)__builtin_clzl(map);
	}
	return q->now;
}

/* Behind all that come within a slice, and not behind those that sit out several by their nice values. */
static void append_yielded(struct wf_runq *q, struct wf_thread *t)
{
	uint64_t slice = wf_runq_slice(wf_rt.slice_ns) >> WF_SLOT_SHIFT, slot, last;

	(void)settle(q, t, &slot);
	last = last_slot(q, block_of(q->now + slice) + 1);
	if (last > slot) {
		slot = last;
		t->vtime = slot << WF_SLOT_SHIFT;
	}
	append_at(q, t, slot);
}

void wf_runq_adopt(struct wf_runq *q, struct wf_thread *t, const struct wf_runq *from)
{
	int64_t ahead = from ? wf_runq_ahead(from, t) : 0;

	if (ahead < 0 || ahead > AHEAD_MAX)
		ahead = 0;
	t->vtime = (wf_load_relaxed(&q->now) << WF_SLOT_SHIFT) + (uint64_t)ahead;
}

bool wf_runq_has_up_to(struct wf_runq *q, unsigned level)
{
	bool has = false;

	lock(q);
	has |= q->woken.head && wf_load_relaxed(&q->woken.head->level) <= level;
	for (uint32_t i = 0; i < ARRAY_LEN(q->near) && !has; i++)
		has |= q->near[i].head && wf_load_relaxed(&q->near[i].head->level) <= level;
	for (uint32_t i = 0; i < ARRAY_LEN(q->far) && !has; i++)
		has |= q->far[i].head && wf_load_relaxed(&q->far[i].head->level) <= level;
	unlock(q);
	return has;
}

/* how many are looked at, under the lock, before one of them is taken to be due */
#define FAR_LOOKS 64

/* Somebody's time comes in that slot or before. */
static bool is_anybody_until(const struct wf_runq *q, uint64_t slot)
{
	uint64_t block = block_of(q->now), first;
	int looks = 0;

	if (first_near(q, &first))
		return first <= slot;
	if (!(q->far_map[0] | q->far_map[1]))
		return false;
	for (uint64_t b = block + WF_NEAR; b < block + WF_FAR && b <= block_of(slot); b++) {
		const struct wf_thread *t = q->far[b % WF_FAR].head;

		for (; t; t = t->next)
			if (q->now + ((uint64_t)wf_runq_ahead(q, t) >> WF_SLOT_SHIFT) <= slot ||
			    ++looks == FAR_LOOKS)
				return true;
	}
	return false;
}

bool wf_runq_keeps(struct wf_runq *q, struct wf_thread *t)
{
	uint64_t slot;
	bool keeps;

	lock(q);
	(void)settle(q, t, &slot);
	keeps = !q->handoff && !q->woken.head && !is_anybody_until(q, slot);
	if (keeps)
		advance(q, slot);
	unlock(q);
	return keeps;
}

void wf_runq_push(struct wf_runq *q, struct wf_thread *t, enum wf_place place)
{
	lock(q);
	switch (place) {
	case WF_PLACE_HANDOFF:
		if (wf_runq_nr(q) && wf_runq_ahead(q, t) > HANDOFF_AHEAD) {
			append_woken(q, t);
			break;
		}
		if (q->handoff)
			append_woken(q, q->handoff);
		q->handoff = t;
		break;
	case WF_PLACE_WOKEN:
		append_woken(q, t);
		break;
	case WF_PLACE_TAIL:
		append(q, t);
		break;
	case WF_PLACE_YIELDED:
		append_yielded(q, t);
		break;
	}
	count(q, t, 1);
	unlock(q);
}

static bool is_left(const struct wf_thread *t, const struct wf_worker *home, enum wf_leave leave)
{
	if (leave == WF_LEAVE_NONE || t->home != home)
		return false;
	return leave == WF_LEAVE_WARM || wf_thread_is_beside_peer(t);
}

/* The list whose threads run next; NULL when nothing is queued. The clock is not a thief's to advance. */
static struct wf_level *next_in_turn(struct wf_runq *q)
{
	uint64_t slot, block;

	if (q->woken.head)
		return &q->woken;
	if (first_near(q, &slot))
		return near_at(q, slot);
	return first_far(q, &block) ? &q->far[block % WF_FAR] : NULL;
}

/* The first that a thief may have, or NULL. */
static struct wf_thread *take_for_thief(struct wf_runq *q, bool takes_gathered,
					const struct wf_worker *home, enum wf_leave leave)
{
	struct wf_level *l = next_in_turn(q);
	struct wf_thread *t = l ? l->head : NULL, *before = NULL;

	for (int i = 0; t && is_left(t, home, leave); i++) {
		if (i == LOOKS_MAX)
			return NULL;
		before = t;
		t = t->next;
	}
	if (!t || (t->gathers && !takes_gathered))
		return NULL;
	if (!before)
		return take_first(q, l);
	before->next = t->next;
	if (!t->next)
		l->tail = before;
	return t;
}

struct wf_thread *wf_runq_pop(struct wf_runq *q, bool *out_new_slice)
{
	struct wf_thread *t = NULL;

	*out_new_slice = true;
	lock(q);
	if (q->handoff && q->handoff_streak >= WF_HANDOFFS_IN_A_ROW) {
		append(q, q->handoff);
		q->handoff = NULL;
	}
	if (q->handoff) {
		t = q->handoff;
		q->handoff = NULL;
		q->handoff_streak++;
		*out_new_slice = false;
		if (wf_runq_nr(q) == 1)
			wf_runq_follow(q, t);
	} else {
		t = take_queued(q);
		q->handoff_streak = 0;
	}
	if (t)
		count(q, t, -1);
	unlock(q);
	return t;
}

void wf_runq_end_handoff(struct wf_runq *q)
{
	lock(q);
	if (q->handoff) {
		q->handoff->hurry = wf_habit_rise(WF_HABIT_HURRIES, q->handoff->hurry, 1) & 0xff;
		append(q, q->handoff);
	}
	q->handoff = NULL;
	unlock(q);
}

uint32_t wf_runq_steal(struct wf_runq *to, struct wf_runq *from, enum wf_greed greed,
		       const struct wf_worker *home, enum wf_leave leave)
{
	struct wf_thread *taken[STEAL_MAX], *handoff;
	uint32_t want, n = 0;

	/* The kernel may have descheduled the holder: a thief has other victims. */
	if (!wf_runq_nr(from) || !wf_spin_trylock(&from->lock))
		return 0;
	want = wf_runq_nr(from) - (from->handoff ? 1 : 0);
	want = WF_MIN((want + 1) / 2, (uint32_t)STEAL_MAX);
	while (n < want && (taken[n] = take_for_thief(from, false, home, leave)))
		n++;
	if (!n && greed == WF_GREED_ALL)
		n = (taken[0] = take_for_thief(from, true, home, leave)) != NULL;
	handoff = from->handoff;
	if (!n && greed != WF_GREED_NONE && handoff && !is_left(handoff, home, leave) &&
	    (greed == WF_GREED_ALL || !handoff->gathers)) {
		taken[n++] = handoff;
		from->handoff = NULL;
	}
	for (uint32_t i = 0; i < n; i++)
		count(from, taken[i], -1);
	wf_spin_unlock(&from->lock);
	for (uint32_t i = 0; i < n; i++) {
		wf_runq_adopt(to, taken[i], from);
		wf_runq_push(to, taken[i], WF_PLACE_TAIL);
	}
	return n;
}
