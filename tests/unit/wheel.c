// SPDX-License-Identifier: Apache-2.0
/*
 * sched/wheel: against a naive table of deadlines. Never early, never lost, and `next` is a true bound: a
 * sleeper who sleeps until next again and again fires every timer on time.
 */
#include "sched/wheel.h"

#include <stdlib.h>

#include "tap.h"

#define MANY 100000
#define EPOCH (123456789ll * WF_MS)

struct entry {
	struct wf_timer timer;
	int64_t deadline;
	bool is_armed, has_fired;
};

static struct wf_wheel wheel;
static struct entry entries[MANY];
static int64_t now;
static int nr_fired, nr_early, nr_unarmed;

static uint64_t seed;

static uint64_t next_random(void)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return seed >> 30;
}

static uint64_t start_seed(uint64_t n)
{
	const char *text = getenv("WEFT_SEED");

	seed = (text ? strtoull(text, NULL, 0) : 1) + n;
	return seed;
}

static void fire(struct wf_timer *t)
{
	struct entry *e = container_of(t, struct entry, timer);

	nr_fired++;
	nr_early += e->deadline > now;
	nr_unarmed += !e->is_armed;
	e->is_armed = false;
	e->has_fired = true;
}

static void reset(void)
{
	now = EPOCH;
	wf_wheel_init(&wheel, now);
	nr_fired = nr_early = nr_unarmed = 0;
	for (int i = 0; i < MANY; i++) {
		entries[i] = (struct entry){ 0 };
		wf_timer_init(&entries[i].timer, fire);
	}
}

static bool add(struct entry *e, int64_t deadline)
{
	e->deadline = deadline;
	e->is_armed = true;
	e->has_fired = false;
	return wf_wheel_add(&wheel, &e->timer, deadline);
}

static void cancel(struct entry *e)
{
	wf_wheel_cancel(&wheel, &e->timer);
	e->is_armed = false;
}

/* Any distance that a level can have, and the exact borders between levels. */
static int64_t any_distance(void)
{
	unsigned bits = (unsigned)(next_random() % 50);
	int64_t distance = (int64_t)(next_random() % (1ull << bits));

	if (next_random() % 4 == 0)
		distance = (1ll << (WF_WHEEL_SHIFT + WF_WHEEL_BITS * (next_random() % 4))) +
			   (int64_t)(next_random() % 5) - 2;
	return distance;
}

TEST(a_timer_fires_at_its_deadline_and_not_before)
{
	reset();
	CHECK(add(&entries[0], now + 1000));
	CHECK_EQ(wheel.next, now + 1000);
	now += 999;
	CHECK_EQ(wf_wheel_expire(&wheel, now), 0);
	now += 1;
	CHECK_EQ(wf_wheel_expire(&wheel, now), 1);
	CHECK_EQ(wf_wheel_expire(&wheel, now), 0);
	CHECK_EQ(wheel.next, WF_NEVER);
}

TEST(a_deadline_that_has_passed_fires_at_once)
{
	reset();
	now += 10 * WF_SEC;
	(void)add(&entries[0], now - 5 * WF_SEC);
	(void)add(&entries[1], now - 50 * WF_SEC);
	(void)add(&entries[2], 0);
	CHECK_EQ(wf_wheel_expire(&wheel, now), 3);
}

TEST(add_says_when_a_timer_is_the_first)
{
	reset();
	CHECK(add(&entries[0], now + 2 * WF_SEC));
	CHECK(!add(&entries[1], now + 3 * WF_SEC));
	CHECK(!add(&entries[2], now + 2 * WF_SEC));
	CHECK(add(&entries[3], now + 2 * WF_SEC - 1));
}

TEST(a_cancelled_timer_does_not_fire)
{
	reset();
	(void)add(&entries[0], now + 1000);
	(void)add(&entries[1], now + 1000);
	cancel(&entries[0]);
	cancel(&entries[0]);
	now += WF_SEC;
	CHECK_EQ(wf_wheel_expire(&wheel, now), 1);
	CHECK(!entries[0].has_fired);
	cancel(&entries[1]);
	CHECK_EQ(wheel.nr, 0);
	(void)add(&entries[0], now + 1000);
	cancel(&entries[0]);
	CHECK_EQ(wheel.next, WF_NEVER);
}

TEST(every_level_gives_its_timers_back)
{
	for (int bits = 0; bits < 62; bits++) {
		reset();
		(void)add(&entries[0],
			  (1ll << bits) > WF_NEVER - now ? WF_NEVER - 1 : now + (1ll << bits));
		(void)add(&entries[1], WF_NEVER - 1);
		for (int i = 0; i < 20 && !entries[0].has_fired; i++) {
			now = WF_MAX(now, wheel.next);
			(void)wf_wheel_expire(&wheel, now);
		}
		CHECK(entries[0].has_fired);
		CHECK_EQ(now, entries[0].deadline);
		CHECK(!entries[1].has_fired);
	}
}

/* Random adds, cancels and steps of time: after each expire exactly what is due has fired. */
TEST(it_agrees_with_a_naive_list)
{
	enum {
		NR = 200,
		STEPS = 300,
		ROUNDS = 200
	};

	tap_note("WEFT_SEED=%llu", (unsigned long long)start_seed(0));
	for (uint64_t round = 0; round < ROUNDS; round++) {
		int bad = 0;

		(void)start_seed(round);
		reset();
		for (int step = 0; step < STEPS; step++) {
			struct entry *e = &entries[next_random() % NR];

			if (!e->is_armed)
				(void)add(e, now + any_distance());
			else if (next_random() % 3 == 0)
				cancel(e);
			if (next_random() % 3)
				continue;
			now += any_distance() / (1 + (int64_t)(next_random() % 1000));
			for (int i = 0; i < NR; i++)
				bad += entries[i].is_armed && entries[i].deadline < wheel.next;
			(void)wf_wheel_expire(&wheel, now);
			for (int i = 0; i < NR; i++)
				bad += entries[i].is_armed && entries[i].deadline <= now;
		}
		if (!CHECK(!bad && !nr_early && !nr_unarmed)) {
			tap_note("round %llu: %d bad, %d early, %d not armed",
				 (unsigned long long)round, bad, nr_early, nr_unarmed);
			return;
		}
	}
}

/* The number of times that a sleeper who only knows wheel.next has to wake until all have fired. */
static int sleep_through(int *out_late)
{
	int wakes = 0, late = 0;

	while (wheel.next != WF_NEVER && wakes < 20 * MANY) {
		int64_t before = now;

		now = WF_MAX(now, wheel.next);
		for (int i = 0; i < MANY; i += 997)
			late += entries[i].is_armed && entries[i].deadline < now &&
				entries[i].deadline > before;
		(void)wf_wheel_expire(&wheel, now);
		wakes++;
	}
	*out_late = late;
	return wakes;
}

TEST(sleeping_until_next_fires_every_timer_on_time)
{
	for (uint64_t round = 0; round < 20; round++) {
		int late, wakes;

		(void)start_seed(round);
		reset();
		for (int i = 0; i < 1000; i++)
			(void)add(&entries[i], now + any_distance() % (1ll << 40));
		wakes = sleep_through(&late);
		CHECK_EQ(nr_fired, 1000);
		CHECK_EQ(nr_early, 0);
		CHECK_EQ(late, 0);
		CHECK(wakes <= 1000 + 8 * 64 + 64);
	}
}

TEST(many_far_timers_do_not_wake_a_sleeper_early_and_often)
{
	int late, wakes;

	reset();
	for (int i = 0; i < 1000; i++)
		(void)add(&entries[i], now + 10 * WF_SEC + i);
	(void)add(&entries[1000], now + WF_MS); /* the wheel looks around when this one has fired */
	wakes = sleep_through(&late);
	CHECK_EQ(nr_fired, 1001);
	CHECK_EQ(late, 0);
	tap_note("%d wake-ups for 1000 timers", wakes);
	CHECK(wakes <= 1001 + 16);
}

TEST(a_hundred_thousand_timers_all_fire_on_time)
{
	int late, wakes;

	tap_note("WEFT_SEED=%llu", (unsigned long long)start_seed(0));
	reset();
	for (int i = 0; i < MANY; i++)
		(void)add(&entries[i], now + (int64_t)(next_random() % (60ull * WF_SEC)));
	for (int i = 0; i < MANY; i += 10)
		cancel(&entries[i]);
	wakes = sleep_through(&late);
	CHECK_EQ(nr_fired, MANY - MANY / 10);
	CHECK_EQ(nr_early, 0);
	CHECK_EQ(late, 0);
	tap_note("%d wake-ups", wakes);
}
