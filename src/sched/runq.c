// SPDX-License-Identifier: Apache-2.0
/* The run queue; see runq.h. */
#include "sched/runq.h"
#include "base/die.h"

#define STEAL_MAX 32 /* thieves come back; a bigger haul needs a bigger stack */
#define WARM_LOOKS 8 /* how many a thief passes over, under its victim's lock */

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

static void append_at(struct wf_array *a, struct wf_thread *t, unsigned level)
{
	append_to(&a->level[level], t);
	a->bitmap |= 1ul << level;
}

static void append(struct wf_array *a, struct wf_thread *t)
{
	append_at(a, t, wf_load_relaxed(&t->level)); /* once: others may change it at any time */
}

/* The list whose head is next in turn, or NULL. */
static struct wf_level *first_of(struct wf_array *a)
{
	if (a->woken.head)
		return &a->woken;
	return a->bitmap ? &a->level[__builtin_ctzl(a->bitmap)] : NULL;
}

static struct wf_thread *take_first(struct wf_array *a, struct wf_level *l)
{
	struct wf_thread *t = take_from(l);

	if (!l->head && l != &a->woken)
		a->bitmap &= ~(1ul << (l - a->level));
	return t;
}

/*
 * What a slice costs, in rounds, with 16 bits of fraction: the inverse of the kernel's weights, 1.25 times as much for
 * each step of nice. Slices are counted, not measured: whose kernel thread was not running pays for no time.
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

_Static_assert(WF_ROUNDS == 128, "two words of later_map");

static void append_later(struct wf_runq *q, struct wf_thread *t, uint32_t rounds)
{
	uint32_t at = (q->round + WF_MIN(rounds, WF_ROUNDS - 1)) % WF_ROUNDS;

	append_to(&q->later[at], t);
	q->later_map[at / 64] |= 1ul << at % 64;
}

/* How far the first round is in which somebody waits; WF_ROUNDS: none. */
static uint32_t rounds_to_next(const struct wf_runq *q)
{
	for (uint32_t ahead = 1; ahead < WF_ROUNDS;) {
		uint32_t at = (q->round + ahead) % WF_ROUNDS;
		uint64_t map = q->later_map[at / 64] >> at % 64;

		if (map)
			return ahead + (uint32_t)__builtin_ctzl(map);
		ahead += 64 - at % 64;
	}
	return WF_ROUNDS;
}

/* All of l, in front of nobody. */
static void join_active(struct wf_runq *q, struct wf_level *l)
{
	struct wf_array *a = &q->array[q->active];
	struct wf_level *to = &a->level[WF_LEVEL_NORMAL];

	if (to->tail)
		to->tail->next = l->head;
	else
		to->head = l->head;
	to->tail = l->tail;
	a->bitmap |= 1ul << WF_LEVEL_NORMAL;
	*l = (struct wf_level){ 0 };
}

/* The active array is empty: the expired one is the next, and with it whoever waits for that round; empty rounds are left out. */
static void begin_round(struct wf_runq *q)
{
	uint32_t at, ahead = 1;

	q->active = !q->active;
	if (WF_LIKELY(!(q->later_map[0] | q->later_map[1]))) {
		q->round++;
		return;
	}
	if (!first_of(&q->array[q->active]))
		ahead = rounds_to_next(q);
	q->round += ahead;
	at = q->round % WF_ROUNDS;
	if (!q->later[at].head)
		return;
	q->later_map[at / 64] &= ~(1ul << at % 64);
	join_active(q, &q->later[at]);
}

/* A slice costs parts of a round by its level, in 1/65536. Returns whole rounds; *out_rest is for t->turns. */
static uint32_t pay(const struct wf_thread *t, unsigned level, uint16_t *out_rest)
{
	uint32_t turns = t->turns + cost[level];

	*out_rest = (uint16_t)turns;
	return turns >> 16;
}

/* Under the lock. The round in which t ran may be over: its successor is taken before it is put back. */
static void put_used(struct wf_runq *q, struct wf_thread *t)
{
	unsigned level = wf_load_relaxed(&t->level);
	int32_t rounds = (int32_t)pay(t, level, &t->turns), ahead;

	ahead = WF_MIN((int16_t)(t->round + (uint32_t)rounds - q->round), rounds);
	if (ahead > 1)
		append_later(q, t, (uint32_t)ahead);
	else
		append_at(&q->array[ahead == 1 ? !q->active : q->active], t, level);
	wf_store_relaxed(&q->nr, wf_runq_nr(q) + 1);
}

void wf_runq_push_used(struct wf_runq *q, struct wf_thread *t)
{
	lock(q);
	put_used(q, t);
	unlock(q);
}

void wf_runq_push_moved(struct wf_runq *q, struct wf_thread *t)
{
	lock(q);
	t->round = (uint16_t)q->round;
	put_used(q, t);
	unlock(q);
}

bool wf_runq_has_up_to(struct wf_runq *q, unsigned level)
{
	bool has = false;

	lock(q);
	for (int i = 0; i < 2; i++) {
		const struct wf_level *first = first_of(&q->array[i]);

		has |= first && wf_load_relaxed(&first->head->level) <= level;
	}
	unlock(q);
	return has;
}

bool wf_runq_keeps(struct wf_runq *q, struct wf_thread *t)
{
	uint16_t rest;
	uint32_t rounds = pay(t, wf_load_relaxed(&t->level), &rest);
	bool keeps;

	lock(q);
	keeps = !q->handoff && !first_of(&q->array[q->active]) &&
		(!rounds || (!first_of(&q->array[!q->active]) && rounds_to_next(q) > rounds));
	if (keeps) {
		t->turns = rest;
		q->round += rounds;
		t->round = (uint16_t)q->round;
	}
	unlock(q);
	return keeps;
}

void wf_runq_push(struct wf_runq *q, struct wf_thread *t, enum wf_place place)
{
	lock(q);
	switch (place) {
	case WF_PLACE_HANDOFF:
		if (q->handoff)
			append_to(&q->array[q->active].woken, q->handoff);
		q->handoff = t;
		break;
	case WF_PLACE_WOKEN:
		append_to(&q->array[q->active].woken, t);
		break;
	case WF_PLACE_TAIL:
		append(&q->array[q->active], t);
		break;
	case WF_PLACE_EXPIRED:
		append(&q->array[!q->active], t);
		break;
	}
	wf_store_relaxed(&q->nr, wf_runq_nr(q) + 1);
	unlock(q);
}

/* The list whose head runs next; NULL when nothing is queued. */
static struct wf_level *next_in_turn(struct wf_runq *q)
{
	struct wf_level *l = first_of(&q->array[q->active]);

	if (!l) {
		begin_round(q);
		l = first_of(&q->array[q->active]);
	}
	return l;
}

static struct wf_thread *take_queued(struct wf_runq *q)
{
	struct wf_level *l = next_in_turn(q);

	return l ? take_first(&q->array[q->active], l) : NULL;
}

static bool is_warm(const struct wf_thread *t, const struct wf_worker *warm_at)
{
	return warm_at && t->home == warm_at;
}

/* The first that a thief may have, or NULL; all of them run before any of another level. */
static struct wf_thread *take_for_thief(struct wf_runq *q, bool takes_gathered,
					const struct wf_worker *warm_at)
{
	struct wf_level *l = next_in_turn(q);
	struct wf_thread *t = l ? l->head : NULL, *before = NULL;

	for (int i = 0; t && is_warm(t, warm_at); i++) {
		if (i == WARM_LOOKS)
			return NULL;
		before = t;
		t = t->next;
	}
	if (!t || (t->gathers && !takes_gathered))
		return NULL;
	if (!before)
		return take_first(&q->array[q->active], l);
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
		append(&q->array[q->active], q->handoff);
		q->handoff = NULL;
	}
	if (q->handoff) {
		t = q->handoff;
		q->handoff = NULL;
		q->handoff_streak++;
		*out_new_slice = false;
	} else {
		t = take_queued(q);
		q->handoff_streak = 0;
	}
	if (t) {
		t->round = (uint16_t)q->round;
		wf_store_relaxed(&q->nr, wf_runq_nr(q) - 1);
	}
	unlock(q);
	return t;
}

void wf_runq_end_handoff(struct wf_runq *q)
{
	lock(q);
	if (q->handoff)
		append(&q->array[q->active], q->handoff);
	q->handoff = NULL;
	unlock(q);
}

uint32_t wf_runq_steal(struct wf_runq *to, struct wf_runq *from, enum wf_greed greed,
		       const struct wf_worker *warm_at)
{
	struct wf_thread *taken[STEAL_MAX], *handoff;
	uint32_t want, n = 0;

	/* The kernel may have descheduled the holder: a thief has other victims. */
	if (!wf_runq_nr(from) || !wf_spin_trylock(&from->lock))
		return 0;
	want = wf_runq_nr(from) - (from->handoff ? 1 : 0);
	want = WF_MIN((want + 1) / 2, (uint32_t)STEAL_MAX);
	while (n < want && (taken[n] = take_for_thief(from, false, warm_at)))
		n++;
	if (!n && greed == WF_GREED_ALL)
		n = (taken[0] = take_for_thief(from, true, warm_at)) != NULL;
	handoff = from->handoff;
	if (!n && greed != WF_GREED_NONE && handoff && !is_warm(handoff, warm_at) &&
	    (greed == WF_GREED_ALL || !handoff->gathers)) {
		taken[n++] = handoff;
		from->handoff = NULL;
	}
	wf_store_relaxed(&from->nr, wf_runq_nr(from) - n);
	wf_spin_unlock(&from->lock);
	for (uint32_t i = 0; i < n; i++)
		wf_runq_push(to, taken[i], WF_PLACE_TAIL);
	return n;
}
