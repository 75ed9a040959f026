// SPDX-License-Identifier: Apache-2.0
/* linux/timertable: timers by their number. */
#include "linux/timertable.h"

#include "tap.h"

#define NR 4096

static int signo_of[NR]; /* what the table should hold; 0: nothing */

static uint32_t below(uint32_t limit)
{
	static uint64_t state = 1;

	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(state >> 33) % limit;
}

static int nr_wrong(void)
{
	int nr = 0;

	lx_timer_lock();
	for (int id = 0; id < NR; id++) {
		const struct lx_timer *t = lx_timer_find(id);

		nr += t ? t->id != id || t->signo != signo_of[id] : signo_of[id] != 0;
	}
	lx_timer_unlock();
	return nr;
}

static void put(int id, int signo)
{
	const struct lx_timer fresh = { .id = id, .signo = signo };

	CHECK(lx_timer_add(&fresh));
	signo_of[id] = signo;
}

static void take_out(int id)
{
	lx_timer_remove(id);
	signo_of[id] = 0;
}

static void start(void)
{
	lx_timer_table_forget();
	for (int id = 0; id < NR; id++)
		signo_of[id] = 0;
}

TEST(an_empty_table_has_nothing)
{
	start();
	take_out(5);
	CHECK_EQ(nr_wrong(), 0);
}

TEST(whatever_comes_and_goes_the_rest_is_found)
{
	start();
	for (int round = 0; round < 60; round++) {
		/* Numbers in few places, or in many; more that come, or more that go. */
		uint32_t step = round % 3 ? 1 : 64, mostly = round / 10 % 2;

		for (int i = 0; i < 500; i++) {
			int id = (int)(below(NR / step) * step);

			if (below(4) ? mostly : !mostly)
				take_out(id);
			else
				put(id, 1 + (int)below(64));
		}
		CHECK_EQ(nr_wrong(), 0);
	}
}

TEST(one_that_is_put_twice_is_there_once)
{
	start();
	for (int i = 0; i < 1000; i++)
		put(7, 1 + i % 64);
	for (int id = 8; id < 100; id++)
		put(id, 1);
	take_out(7);
	CHECK_EQ(nr_wrong(), 0);
}
