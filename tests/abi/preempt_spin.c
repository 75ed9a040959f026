// SPDX-License-Identifier: Apache-2.0
/*
 * Preemption: threads that never call anything do not keep others from running.
 */
#include "check.h"

static volatile int flag;
static volatile unsigned long work[8];
static int stop;

static void *spins_on_flag(void *arg)
{
	while (!flag)
		;
	return arg;
}

static void *sets_flag(void *arg)
{
	flag = 1;
	return arg;
}

static void *spins(void *arg)
{
	volatile unsigned long *counter = (volatile unsigned long *)arg;

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
		(*counter)++;
	return NULL;
}

static void *sleeps(void *arg)
{
	for (int i = 0; i < 20; i++)
		sleep_ns(MS);
	return arg;
}

/* Three threads in a ring, each waiting for its turn without any call. */
static volatile int turn;

static void *takes_turns(void *arg)
{
	int mine = (int)(intptr_t)arg;

	for (int i = 0; i < 5; i++) {
		while (turn % 3 != mine)
			;
		turn++;
	}
	return NULL;
}

int main(void)
{
	pthread_t t[8];

	t[0] = start(spins_on_flag, NULL);
	t[1] = start(sets_flag, NULL);
	join(t[0]);
	join(t[1]);
	ok("a flag set by another thread");

	flag = 0;
	t[1] = start(sets_flag, NULL);
	spins_on_flag(NULL);
	join(t[1]);
	ok("main spins");

	for (int i = 0; i < 8; i++)
		t[i] = start(spins, (void *)&work[i]);
	join(start(sleeps, NULL));
	ok("a sleeper ends among 8 spinning threads");

	for (int i = 0; i < 8; i++)
		while (work[i] == 0)
			sched_yield();
	STORE(&stop, 1);
	for (int i = 0; i < 8; i++)
		join(t[i]);
	ok("every spinning thread got to run");

	for (intptr_t i = 0; i < 3; i++)
		t[i] = start(takes_turns, (void *)i);
	for (int i = 0; i < 3; i++)
		join(t[i]);
	CHECK_EQ(turn, 15);
	ok("turns without calls");
	return finish();
}
