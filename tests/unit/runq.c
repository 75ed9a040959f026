// SPDX-License-Identifier: Apache-2.0
/* sched/runq: who runs next. */
#include "sched/runq.h"
#include "sched/worker.h"

#include <stdlib.h>

#include "tap.h"

#define NR 200

static struct wf_runq q, other;
static struct wf_thread threads[NR];
static bool new_slice;

static void reset(void)
{
	q = other = (struct wf_runq){ 0 };
	for (int i = 0; i < NR; i++)
		threads[i] = (struct wf_thread){ .level = WF_LEVEL_NORMAL, .index = (uint32_t)i };
}

static void push(int i, enum wf_place place)
{
	wf_runq_push(&q, &threads[i], place);
}

/* Index of the next thread, -1 when the queue is empty. */
static int pop(struct wf_runq *from)
{
	struct wf_thread *t = wf_runq_pop(from, &new_slice);

	return t ? (int)t->index : -1;
}

TEST(first_come_first_served_within_a_level)
{
	reset();
	for (int i = 0; i < 5; i++)
		push(i, WF_PLACE_TAIL);
	CHECK_EQ(wf_runq_nr(&q), 5);
	for (int i = 0; i < 5; i++)
		CHECK_EQ(pop(&q), i);
	CHECK_EQ(pop(&q), -1);
	CHECK_EQ(wf_runq_nr(&q), 0);
}

/* In units of virtual time. */
#define MS (1000000 / WF_VTIME_NS)

TEST(who_has_run_least_runs_first)
{
	reset();
	for (int i = 0; i < 3; i++) {
		static const uint64_t ran[] = { 30 * MS, MS, 3 * MS };

		wf_runq_charge(&threads[i], ran[i]);
		push(i, WF_PLACE_TAIL);
	}
	CHECK_EQ(pop(&q), 1);
	CHECK_EQ(pop(&q), 2);
	CHECK_EQ(pop(&q), 0);
}

TEST(who_slept_is_not_owed_the_time_but_comes_at_once)
{
	reset();
	wf_runq_charge(&threads[0], 1000 * MS);
	push(0, WF_PLACE_TAIL);
	CHECK_EQ(pop(&q), 0);
	push(0, WF_PLACE_TAIL);
	push(1, WF_PLACE_WOKEN); /* has never run */
	CHECK_EQ(pop(&q), 1);
	wf_runq_charge(&threads[1], MS);
	push(1, WF_PLACE_TAIL);
	CHECK_EQ(pop(&q), 0);
	CHECK_EQ(pop(&q), 1);
}

/* So many threads that wait after short turns and come back at once, and all that come back are ready. */
TEST(threads_with_short_turns_go_round_together)
{
	static int turns[NR];
	int least = 1 << 30, most = 0;

	reset();
	for (int i = 0; i < NR; i++) {
		turns[i] = 0;
		push(i, WF_PLACE_WOKEN);
	}
	for (int n = 0; n < 100 * NR; n++) {
		int i = pop(&q);

		turns[i]++;
		wf_runq_charge(&threads[i], MS / 20);
		push(i, WF_PLACE_WOKEN);
	}
	for (int i = 0; i < NR; i++) {
		least = turns[i] < least ? turns[i] : least;
		most = turns[i] > most ? turns[i] : most;
	}
	CHECK(most - least <= 1);
}

TEST(who_computes_gets_as_much_beside_many_with_short_turns)
{
	uint64_t computed = 0, others = 0;

	reset();
	for (int i = 0; i < 10; i++)
		push(i, WF_PLACE_WOKEN);
	for (int n = 0; n < 100000; n++) {
		int i = pop(&q);
		uint64_t ran = i ? MS / 20 : 10 * MS;

		CHECK(i >= 0);
		if (i < 0)
			break;
		*(i ? &others : &computed) += ran;
		wf_runq_charge(&threads[i], ran);
		push(i, i ? WF_PLACE_WOKEN : WF_PLACE_TAIL);
	}
	CHECK(computed * 9 >= others * 95 / 100 && computed * 9 <= others * 105 / 100);
}

TEST(a_clock_that_has_gone_round_delays_nobody)
{
	reset();
	q.now = 1ull << 45; /* beyond what a thread's clock can say */
	push(0, WF_PLACE_WOKEN);
	CHECK_EQ(pop(&q), 0);
	wf_runq_charge(&threads[0], MS);
	push(0, WF_PLACE_TAIL);
	threads[1].vtime = (q.now << WF_SLOT_SHIFT) + (1ull << 44); /* slept for half of it */
	push(1, WF_PLACE_WOKEN);
	CHECK_EQ(pop(&q), 1);
	CHECK_EQ(pop(&q), 0);
}

#define MAX_HOGS 4
#define TURNS 100000

/* One worker's turns among threads that use every slice; shares in thousandths of all turns. */
static void share_turns(const int *nice, int n, long *out)
{
	struct wf_thread *cur;
	long turns[MAX_HOGS] = { 0 };

	reset();
	for (int i = 0; i < n; i++) {
		threads[i].level = (uint8_t)(WF_LEVEL_NORMAL + nice[i]);
		push(i, WF_PLACE_TAIL);
	}
	cur = wf_runq_pop(&q, &new_slice);
	for (int i = 0; i < TURNS; i++) {
		struct wf_thread *next;

		turns[cur->index]++;
		wf_runq_charge(cur, wf_runq_slice(WF_SLICE_NS));
		if (wf_runq_keeps(&q, cur))
			continue;
		/* as a switch does: the successor first */
		next = wf_runq_pop(&q, &new_slice);
		wf_runq_push(&q, cur, WF_PLACE_TAIL);
		cur = next;
	}
	CHECK_EQ(wf_runq_nr(&q), n - 1);
	for (int i = 0; i < n; i++)
		out[i] = turns[i] * 1000 / TURNS;
}

#define CHECK_SHARE(got, want) CHECK((got) >= (want)*95 / 100 - 1 && (got) <= (want)*105 / 100 + 1)

TEST(hogs_share_by_their_nice_values)
{
	static const struct {
		int n, nice[MAX_HOGS], share[MAX_HOGS];
	} cases[] = {
		{ 2, { 0, 0 }, { 500, 500 } },
		{ 3, { 0, 0, 0 }, { 333, 333, 333 } },
		{ 2, { 0, 5 }, { 753, 247 } },
		{ 2, { 5, 0 }, { 247, 753 } },
		{ 3, { 5, 5, 5 }, { 333, 333, 333 } },
		{ 4, { 0, 0, 10, 10 }, { 451, 451, 48, 48 } },
		{ 4, { 0, 0, 0, 1 }, { 263, 263, 263, 211 } },
		{ 2, { -5, 0 }, { 753, 247 } },
		{ 3, { -5, 0, 5 }, { 697, 229, 75 } },
		{ 2, { 0, 19 }, { 986, 14 } },
		{ 3, { 19, 19, 15 }, { 227, 227, 545 } },
		{ 3, { -20, 0, 0 }, { 977, 11, 11 } },
	};

	for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
		long share[MAX_HOGS] = { 0 };

		share_turns(cases[c].nice, cases[c].n, share);
		for (int i = 0; i < cases[c].n; i++)
			if (!CHECK_SHARE(share[i], cases[c].share[i]))
				tap_note("case %zu, thread %d: %ld", c, i, share[i]);
	}
}

/* How many slices the only other thread of q has before one with that nice value, which used its own elsewhere. */
static int slices_before_moved(int nice)
{
	struct wf_thread *cur;

	reset();
	other.now = 1 << 30;
	push(0, WF_PLACE_TAIL);
	cur = wf_runq_pop(&q, &new_slice);
	threads[1].level = (uint8_t)(WF_LEVEL_NORMAL + nice);
	wf_runq_adopt(&other, &threads[1], NULL);
	wf_runq_charge(&threads[1], wf_runq_slice(WF_SLICE_NS));
	wf_runq_adopt(&q, &threads[1], &other);
	wf_runq_push(&q, &threads[1], WF_PLACE_TAIL);
	for (int n = 1;; n++) {
		wf_runq_charge(cur, wf_runq_slice(WF_SLICE_NS));
		if (wf_runq_keeps(&q, cur))
			continue;
		CHECK(cur == &threads[0]);
		cur = wf_runq_pop(&q, &new_slice);
		wf_runq_push(&q, &threads[0], WF_PLACE_TAIL);
		if (cur != &threads[0])
			return n;
	}
}

TEST(who_used_a_slice_elsewhere_pays_for_it_here)
{
	CHECK_EQ(slices_before_moved(0), 1);
	CHECK_EQ(slices_before_moved(5), 4); /* a slice costs 3.06 */
	CHECK_EQ(slices_before_moved(10), 10);
	CHECK_EQ(slices_before_moved(-5), 1);
}

TEST(who_is_to_wait_for_longer_than_the_wheel_is_round_comes_in_time)
{
	for (uint64_t slice = 5; slice < 20; slice++) {
		uint64_t ran = 0;

		reset();
		wf_runq_charge(&threads[1], 700 * MS);
		push(1, WF_PLACE_TAIL);
		do {
			wf_runq_charge(&threads[0], slice * MS);
			ran += slice;
		} while (wf_runq_keeps(&q, &threads[0]));
		CHECK(ran >= 700 && ran <= 700 + slice);
		CHECK_EQ(pop(&q), 1);
	}
}

TEST(who_is_to_wait_for_long_runs_when_nobody_else_does)
{
	reset();
	for (int i = 0; i < 2; i++) {
		wf_runq_charge(&threads[i], 100000 * MS);
		push(i, WF_PLACE_TAIL);
	}
	CHECK_EQ(wf_runq_nr(&q), 2);
	/* also for a thief */
	CHECK_EQ(wf_runq_steal(&other, &q, WF_GREED_NONE, NULL, WF_LEAVE_NONE), 1);
	CHECK_EQ(pop(&other), 0);
	CHECK_EQ(pop(&q), 1);
	CHECK_EQ(pop(&q), -1);
}

TEST(who_woke_meanwhile_goes_before_the_next_slice)
{
	reset();
	threads[0].level = 0;
	CHECK(wf_runq_keeps(&q, &threads[0]));
	push(1, WF_PLACE_WOKEN);
	CHECK(!wf_runq_keeps(&q, &threads[0]));
	CHECK_EQ(pop(&q), 1);
	push(1, WF_PLACE_HANDOFF);
	CHECK(!wf_runq_keeps(&q, &threads[0]));
}

TEST(woken_threads_run_before_the_others)
{
	reset();
	push(0, WF_PLACE_TAIL);
	push(1, WF_PLACE_WOKEN);
	push(2, WF_PLACE_WOKEN);
	CHECK_EQ(pop(&q), 1);
	CHECK_EQ(pop(&q), 2);
	CHECK_EQ(pop(&q), 0);
}

TEST(who_yields_goes_behind_all_that_come_within_a_slice)
{
	reset();
	wf_runq_charge(&threads[1], 3 * MS);
	wf_runq_charge(&threads[2], 9 * MS);
	wf_runq_charge(&threads[3], 200 * MS);
	for (int i = 1; i < 4; i++)
		push(i, WF_PLACE_TAIL);
	push(0, WF_PLACE_YIELDED);
	push(4, WF_PLACE_WOKEN);
	CHECK_EQ(pop(&q), 4);
	CHECK_EQ(pop(&q), 1);
	CHECK_EQ(pop(&q), 2);
	CHECK_EQ(pop(&q), 0);
	CHECK_EQ(pop(&q), 3);
}

TEST(threads_that_yield_take_turns)
{
	reset();
	for (int i = 0; i < 5; i++)
		push(i, WF_PLACE_YIELDED);
	for (int n = 0; n < 100; n++) {
		CHECK_EQ(pop(&q), n % 5);
		push(n % 5, WF_PLACE_YIELDED);
	}
}

TEST(a_hand_off_of_one_that_ran_more_waits_for_the_others)
{
	reset();
	push(0, WF_PLACE_TAIL);
	wf_runq_charge(&threads[1], 2 * MS);
	push(1, WF_PLACE_HANDOFF);
	CHECK_EQ(pop(&q), 0);
	CHECK_EQ(pop(&q), 1);
}

/* Two that hand over to each other are the queue's clock: who comes then is not owed all the time before. */
TEST(hand_offs_advance_the_clock)
{
	reset();
	for (int n = 0; n < 100; n++) {
		push(n & 1, WF_PLACE_HANDOFF);
		CHECK_EQ(pop(&q), n & 1);
		wf_runq_charge(&threads[n & 1], MS);
	}
	push(2, WF_PLACE_TAIL);
	CHECK(wf_runq_ahead(&q, &threads[0]) <= 2 * MS);
	CHECK(wf_runq_ahead(&q, &threads[2]) == 0);
	CHECK_EQ(pop(&q), 2);
}

TEST(a_hand_off_runs_next_and_inherits_the_slice)
{
	reset();
	push(0, WF_PLACE_WOKEN);
	push(1, WF_PLACE_HANDOFF);
	CHECK_EQ(pop(&q), 1);
	CHECK(!new_slice);
	CHECK_EQ(pop(&q), 0);
	CHECK(new_slice);
}

TEST(the_last_of_two_hand_offs_wins_the_slot)
{
	reset();
	push(0, WF_PLACE_HANDOFF);
	push(1, WF_PLACE_HANDOFF);
	CHECK_EQ(wf_runq_nr(&q), 2);
	CHECK_EQ(pop(&q), 1);
	CHECK_EQ(pop(&q), 0);
}

TEST(a_hand_off_whose_waker_went_on_waits_behind_the_woken)
{
	bool is_new;

	reset();
	push(0, WF_PLACE_HANDOFF);
	wf_runq_end_handoff(&q);
	wf_runq_end_handoff(&q); /* an empty slot stays empty */
	push(1, WF_PLACE_WOKEN);
	push(2, WF_PLACE_TAIL);
	CHECK_EQ(wf_runq_nr(&q), 3);
	CHECK_EQ(pop(&q), 1);
	CHECK_EQ(pop(&q), 0);
	CHECK_EQ(pop(&q), 2);
	CHECK(!wf_runq_pop(&q, &is_new));
}

TEST(hand_offs_in_a_row_come_to_an_end)
{
	int nr_in_a_row = 0;

	reset();
	push(0, WF_PLACE_WOKEN);
	push(1, WF_PLACE_HANDOFF);
	while (pop(&q) == 1 && nr_in_a_row < 100) {
		nr_in_a_row++;
		push(1, WF_PLACE_HANDOFF);
	}
	CHECK_EQ(nr_in_a_row, 16);
	CHECK_EQ(pop(&q), 1);
}

TEST(a_level_changed_in_the_queue_loses_nobody)
{
	reset();
	push(0, WF_PLACE_TAIL);
	push(1, WF_PLACE_TAIL);
	threads[0].level = 3;
	threads[1].level = 30;
	CHECK_EQ(pop(&q), 0);
	CHECK_EQ(pop(&q), 1);
	CHECK_EQ(pop(&q), -1);
	push(0, WF_PLACE_TAIL);
	push(1, WF_PLACE_TAIL);
	CHECK_EQ(pop(&q), 0);
	CHECK_EQ(pop(&q), 1);
}

TEST(a_thief_takes_half)
{
	reset();
	for (int i = 0; i < 10; i++)
		push(i, i % 2 ? WF_PLACE_TAIL : WF_PLACE_YIELDED);
	CHECK_EQ(wf_runq_steal(&other, &q, WF_GREED_NONE, NULL, WF_LEAVE_NONE), 5);
	CHECK_EQ(wf_runq_nr(&q), 5);
	CHECK_EQ(wf_runq_nr(&other), 5);
	for (int i = 0; i < 5; i++) {
		CHECK(pop(&q) >= 0);
		CHECK(pop(&other) >= 0);
	}
	CHECK_EQ(pop(&q), -1);
	CHECK_EQ(pop(&other), -1);
}

TEST(a_thief_takes_the_last_one_and_not_too_many)
{
	reset();
	push(0, WF_PLACE_TAIL);
	CHECK_EQ(wf_runq_steal(&other, &q, WF_GREED_NONE, NULL, WF_LEAVE_NONE), 1);
	CHECK_EQ(wf_runq_nr(&q), 0);
	CHECK_EQ(wf_runq_steal(&other, &q, WF_GREED_HANDOFF, NULL, WF_LEAVE_NONE), 0);
	for (int i = 1; i < NR; i++)
		push(i, WF_PLACE_TAIL);
	CHECK_EQ(wf_runq_steal(&other, &q, WF_GREED_HANDOFF, NULL, WF_LEAVE_NONE), 32);
}

TEST(a_hand_off_is_stolen_only_when_asked_for)
{
	reset();
	push(0, WF_PLACE_HANDOFF);
	CHECK_EQ(wf_runq_steal(&other, &q, WF_GREED_NONE, NULL, WF_LEAVE_NONE), 0);
	CHECK_EQ(wf_runq_steal(&other, &q, WF_GREED_HANDOFF, NULL, WF_LEAVE_NONE), 1);
	CHECK_EQ(wf_runq_nr(&q), 0);
	push(1, WF_PLACE_HANDOFF);
	push(2, WF_PLACE_TAIL);
	CHECK_EQ(wf_runq_steal(&other, &q, WF_GREED_HANDOFF, NULL, WF_LEAVE_NONE), 1);
	CHECK_EQ(pop(&q), 1);
}

TEST(threads_that_gather_at_a_lock_are_left_to_the_greedy_one_at_a_time)
{
	reset();
	for (int i = 0; i < 4; i++) {
		push(i, WF_PLACE_WOKEN);
		threads[i].gathers = true;
	}
	CHECK_EQ(wf_runq_steal(&other, &q, WF_GREED_HANDOFF, NULL, WF_LEAVE_NONE), 0);
	CHECK_EQ(wf_runq_steal(&other, &q, WF_GREED_ALL, NULL, WF_LEAVE_NONE), 1);
	CHECK_EQ(pop(&other), 0);
	CHECK_EQ(wf_runq_nr(&q), 3);
	push(4, WF_PLACE_HANDOFF);
	threads[4].gathers = true;
	CHECK_EQ(pop(&q), 4);
	for (int i = 1; i < 4; i++)
		CHECK_EQ(pop(&q), i);
	for (int i = 0; i < 5; i++)
		threads[i].gathers = false;
}

TEST(threads_that_are_warm_at_the_victim_are_left_and_others_behind_them_are_found)
{
	struct wf_worker victim;

	reset();
	for (int i = 0; i < 5; i++) {
		push(i, WF_PLACE_WOKEN);
		threads[i].home = i == 2 || i == 4 ? NULL : &victim;
	}
	CHECK_EQ(wf_runq_steal(&other, &q, WF_GREED_ALL, &victim, WF_LEAVE_WARM), 2);
	CHECK_EQ(pop(&other), 2);
	CHECK_EQ(pop(&other), 4);
	CHECK_EQ(wf_runq_steal(&other, &q, WF_GREED_ALL, &victim, WF_LEAVE_WARM), 0);
	push(5, WF_PLACE_WOKEN); /* the list's end was moved with the last */
	CHECK_EQ(pop(&q), 0);
	CHECK_EQ(pop(&q), 1);
	CHECK_EQ(pop(&q), 3);
	CHECK_EQ(pop(&q), 5);
	push(0, WF_PLACE_HANDOFF);
	CHECK_EQ(wf_runq_steal(&other, &q, WF_GREED_ALL, &victim, WF_LEAVE_WARM), 0);
	CHECK_EQ(wf_runq_steal(&other, &q, WF_GREED_ALL, NULL, WF_LEAVE_NONE), 1);
	CHECK_EQ(pop(&other), 0);
	for (int i = 0; i < 5; i++)
		threads[i].home = NULL;
}

TEST(threads_beside_their_peers_are_left)
{
	struct wf_worker victim;

	reset();
	for (int i = 0; i < 4; i++) {
		threads[i].home = &victim;
		threads[i].peer_here = i == 2 ? 0 : 15;
		push(i, WF_PLACE_WOKEN);
	}
	CHECK(!wf_runq_is_beside_peers(&q));
	CHECK_EQ(wf_runq_steal(&other, &q, WF_GREED_ALL, &victim, WF_LEAVE_BESIDE_PEER), 1);
	CHECK_EQ(pop(&other), 2);
	CHECK(wf_runq_is_beside_peers(&q));
	CHECK_EQ(wf_runq_steal(&other, &q, WF_GREED_ALL, &victim, WF_LEAVE_BESIDE_PEER), 0);
	CHECK_EQ(wf_runq_steal(&other, &q, WF_GREED_ALL, &victim, WF_LEAVE_NONE), 2);
	CHECK(wf_runq_is_beside_peers(&other));
	/* There they are by chance: whoever comes next may have them. */
	CHECK_EQ(wf_runq_steal(&q, &other, WF_GREED_ALL, NULL, WF_LEAVE_BESIDE_PEER), 1);
	for (int i = 0; i < 4; i++) {
		threads[i].home = NULL;
		threads[i].peer_here = 0;
	}
}

TEST(a_locked_queue_is_not_waited_for)
{
	reset();
	push(0, WF_PLACE_TAIL);
	wf_spin_lock(&q.lock);
	CHECK_EQ(wf_runq_steal(&other, &q, WF_GREED_HANDOFF, NULL, WF_LEAVE_NONE), 0);
	wf_spin_unlock(&q.lock);
}

/* Whatever is done, each thread is in one queue at most and none gets lost. */
TEST(random_operations_lose_nobody)
{
	const char *text = getenv("WEFT_SEED");
	uint64_t seed = text ? strtoull(text, NULL, 0) : 1;
	static bool queued[NR];
	static struct wf_worker warm;
	int nr_queued = 0, nr_bad = 0;

	tap_note("WEFT_SEED=%llu", (unsigned long long)seed);
	reset();
	for (int i = 0; i < NR; i++)
		queued[i] = false;
	for (int step = 0; step < 200000; step++) {
		struct wf_runq *from = seed >> 60 & 1 ? &q : &other;
		int i;

		seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		i = (int)((seed >> 33) % NR);
		if (!queued[i]) {
			threads[i].level = (uint8_t)((seed >> 45) % WF_LEVELS);
			wf_runq_charge(&threads[i], (seed >> 30) % (10 * MS));
			wf_runq_adopt(from, &threads[i], seed >> 49 & 1 ? &q : &other);
		}
		threads[i].home = seed >> 53 & 1 ? &warm : NULL;
		switch (seed >> 41 & 3) {
		case 0:
			i = pop(from);
			nr_bad += i >= 0 && !queued[i];
			if (i >= 0) {
				queued[i] = false;
				nr_queued--;
			}
			break;
		case 1:
			(void)wf_runq_steal(from == &q ? &other : &q, from,
					    (enum wf_greed)(seed >> 50 & 1), &warm,
					    (enum wf_leave)((seed >> 54) % 3));
			break;
		default:
			if (queued[i])
				break;
			threads[i].peer_here = seed >> 56 & 15;
			wf_runq_push(from, &threads[i], (enum wf_place)(seed >> 43 & 3));
			queued[i] = true;
			nr_queued++;
		}
		nr_bad += (int)(wf_runq_nr(&q) + wf_runq_nr(&other)) != nr_queued;
	}
	for (int i; (i = pop(&q)) >= 0 || (i = pop(&other)) >= 0; nr_queued--) {
		nr_bad += !queued[i];
		queued[i] = false;
	}
	CHECK_EQ(nr_queued, 0);
	CHECK_EQ(nr_bad, 0);
	CHECK_EQ(q.nr_beside_peer + other.nr_beside_peer, 0);
}
