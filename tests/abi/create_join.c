// SPDX-License-Identifier: Apache-2.0
/*
 * pthread_create and pthread_join: arguments, return values, join order, 10,000 threads in turn.
 */
#include "check.h"

#define NR 100

static pthread_t main_thread;

static void *twice(void *arg)
{
	return (void *)((intptr_t)arg * 2);
}

static void *exits_from_below(void *arg)
{
	if (arg)
		pthread_exit(arg);
	return NULL;
}

static void *joins_main(void *arg)
{
	(void)arg;
	return (void *)(intptr_t)pthread_join(pthread_self(), NULL);
}

static void *waits_for_flag(void *arg)
{
	while (!LOAD((int *)arg))
		sched_yield();
	return arg;
}

static void *makes_one_more(void *arg)
{
	intptr_t depth = (intptr_t)arg;

	if (depth == 0)
		return (void *)1;
	return (void *)((intptr_t)join(start(makes_one_more, (void *)(depth - 1))) + 1);
}

int main(void)
{
	pthread_t t[NR];
	int flag = 0;
	void *value;

	main_thread = pthread_self();
	CHECK_EQ((intptr_t)join(start(twice, (void *)21)), 42);
	ok("one thread returns a value");

	for (intptr_t i = 0; i < NR; i++)
		t[i] = start(twice, (void *)i);
	for (intptr_t i = NR - 1; i >= 0; i--)
		CHECK_EQ((intptr_t)join(t[i]), i * 2);
	ok("joined in reverse order");

	CHECK(join(start(exits_from_below, &flag)) == &flag);
	CHECK_EQ((intptr_t)join(start(joins_main, NULL)), EDEADLK);
	ok("pthread_exit value, and EDEADLK for joining oneself");

	t[0] = start(waits_for_flag, &flag);
	CHECK_EQ(pthread_tryjoin_np(t[0], &value), EBUSY);
	struct timespec ts = timespec_of(clock_ns(CLOCK_REALTIME) + 10 * MS);
	CHECK_EQ(pthread_timedjoin_np(t[0], &value, &ts), ETIMEDOUT);
	CHECK(!pthread_equal(t[0], main_thread));
	STORE(&flag, 1);
	CHECK(join(t[0]) == &flag);
	ok("tryjoin and timedjoin of a running thread");

	CHECK_EQ((intptr_t)join(start(makes_one_more, (void *)50)), 51);
	ok("50 nested creators");

	for (intptr_t i = 0; i < 10000; i++)
		CHECK_EQ((intptr_t)join(start(twice, (void *)i)), i * 2);
	ok("10000 threads one after the other");

	for (int round = 0; round < 20; round++) {
		for (intptr_t i = 0; i < NR; i++)
			t[i] = start(twice, (void *)i);
		for (intptr_t i = 0; i < NR; i++)
			CHECK_EQ((intptr_t)join(t[i]), i * 2);
	}
	ok("20 rounds of 100");
	return finish();
}
