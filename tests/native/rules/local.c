// SPDX-License-Identifier: Apache-2.0
/* Thread-local variables of C11, and the values of keys, are those of one thread for as long as a function runs. */
#include "rules.h"

#include <pthread.h>
#include <stdint.h>
#include <threads.h>

static _Thread_local int last = -1, nr_steps;
static _Thread_local char text[3000];

static tss_t key;
static once_flag made = ONCE_FLAG_INIT;
static int nr_gone;

static void is_gone(void *value)
{
	CHECK(value != NULL);
	(void)__atomic_fetch_add(&nr_gone, 1, __ATOMIC_RELAXED);
}

static void make_key(void)
{
	CHECK_EQ(tss_create(&key, is_gone), thrd_success);
}

static void keeps_variables(int nr)
{
	int *const where = &last;
	char *const c = &text[nr * 200];
	const int before = nr_steps;

	call_once(&made, make_key);
	for (int i = 0; i < 40; i++) {
		last = nr;
		*c = (char)i;
		nr_steps++;
		CHECK_EQ(tss_set(key, (void *)(intptr_t)(nr + 1)), thrd_success);
		rule_wait();
		CHECK_EQ(last, nr);
		CHECK_EQ((intptr_t)tss_get(key), nr + 1);
		/* Other fibers have other bytes of text, so this one is as it was left. */
		rule_turn();
		CHECK_EQ(*c, (char)i);
		CHECK(where == &last);
	}
	CHECK(nr_steps >= before + 40);
}

static void keys_are_gone(enum rule_place place)
{
	int n = __atomic_exchange_n(&nr_gone, 0, __ATOMIC_RELAXED);

	/* One for each thread that has resumed fibers. Those that run tasks go on, and may end later. */
	if (place == IN_THREADS)
		CHECK_EQ(n, RULE_NR);
	else if (place == IN_FIBERS)
		CHECK(n > 0);
}

RULE(thread_local_variables_are_kept, keeps_variables, keys_are_gone)
