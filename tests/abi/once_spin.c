// SPDX-License-Identifier: Apache-2.0
/*
 * pthread_once runs once and everybody sees it done; spin locks exclude even with one worker.
 */
#include "check.h"

#define NR 20

static pthread_once_t once, cancelled_once = PTHREAD_ONCE_INIT;
static pthread_spinlock_t spin;
static int nr_init, nr_tries;
static long counter;

static void init(void)
{
	for (int i = 0; i < 50; i++)
		sched_yield();
	nr_init++;
}

static void *needs_init(void *arg)
{
	CHECK_PT(pthread_once(&once, init));
	CHECK_EQ(nr_init, 1);
	return arg;
}

static void stops_first_time(void)
{
	if (nr_tries++ == 0)
		pthread_exit(NULL);
}

static void *tries_once(void *arg)
{
	pthread_once(&cancelled_once, stops_first_time);
	return arg;
}

static void *spins(void *arg)
{
	for (int i = 0; i < 3000; i++) {
		CHECK_PT(pthread_spin_lock(&spin));
		long seen = counter;

		/* Held over a switch: the others spin until they are preempted. */
		if (i % 1000 == 0)
			sched_yield();
		counter = seen + 1;
		CHECK_PT(pthread_spin_unlock(&spin));
	}
	return arg;
}

int main(void)
{
	pthread_t t[NR];

	for (int i = 0; i < NR; i++)
		t[i] = start(needs_init, NULL);
	for (int i = 0; i < NR; i++)
		join(t[i]);
	CHECK_EQ(nr_init, 1);
	ok("once");

	join(start(tries_once, NULL));
	CHECK(join(start(tries_once, t)) == t);
	CHECK_EQ(nr_tries, 2);
	ok("once is tried again after pthread_exit in it");

	CHECK_PT(pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE));
	for (int i = 0; i < 4; i++)
		t[i] = start(spins, NULL);
	for (int i = 0; i < 4; i++)
		join(t[i]);
	CHECK_EQ(counter, 4 * 3000);
	CHECK_PT(pthread_spin_lock(&spin));
	CHECK_EQ(pthread_spin_trylock(&spin), EBUSY);
	CHECK_PT(pthread_spin_unlock(&spin));
	ok("spin lock");
	return finish();
}
