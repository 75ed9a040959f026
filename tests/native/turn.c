// SPDX-License-Identifier: Apache-2.0
/* weft_thread_yield() hands the turn over at once. With one worker, where only that or the end of a slice lets another run. */
#include <weft/weft.h>

#include "native.h"
#include "tap.h"

#define NR 4
#define TURNS 20000

static int order[NR * TURNS], nr_turns;
static weft_event all_are_here;

static int takes_turns(void *arg)
{
	(void)weft_event_wait(&all_are_here, WEFT_NEVER);
	for (int i = 0; i < TURNS; i++) {
		order[__atomic_fetch_add(&nr_turns, 1, __ATOMIC_RELAXED)] = (int)(long)arg;
		weft_thread_yield();
	}
	return 0;
}

TEST(threads_that_yield_go_round)
{
	weft_thread *t[NR];
	int nr_changes = 0;

	if (is_native_run())
		SKIP("the kernel decides who runs");
	for (int i = 0; i < NR; i++)
		CHECK_EQ(weft_thread_spawn(takes_turns, (void *)(long)i, NULL, &t[i]), 0);
	weft_event_set(&all_are_here);
	for (int i = 0; i < NR; i++)
		CHECK_EQ(weft_thread_join(t[i], NULL, WEFT_NEVER), 0);
	CHECK_EQ(nr_turns, NR * TURNS);
	for (int i = 1; i < nr_turns; i++)
		nr_changes += order[i] != order[i - 1];
	/* One that took longer to begin than the others sits out until these have run as long. */
	CHECK(nr_changes > NR * TURNS / 2);
}
