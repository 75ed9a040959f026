// SPDX-License-Identifier: Apache-2.0
/*
 * Mutex kinds: normal, recursive, errorcheck; trylock, timedlock, clocklock; exclusion under load.
 */
#include "check.h"

#define NR 8
#define ROUNDS 20000

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long counter;
static int is_inside;

static void *hammers(void *arg)
{
	(void)arg;
	for (int i = 0; i < ROUNDS; i++) {
		pthread_mutex_lock(&lock);
		CHECK_EQ(is_inside, 0);
		is_inside = 1;
		counter++;
		if (i % 64 == 0)
			sched_yield();
		is_inside = 0;
		pthread_mutex_unlock(&lock);
	}
	return NULL;
}

static void *tries(void *m)
{
	int ret = pthread_mutex_trylock((pthread_mutex_t *)m);

	if (ret == 0)
		pthread_mutex_unlock((pthread_mutex_t *)m);
	return (void *)(intptr_t)ret;
}

static void *times_out(void *m)
{
	struct timespec ts = timespec_of(clock_ns(CLOCK_REALTIME) + 20 * MS);
	int64_t before = now_ns();
	int ret = pthread_mutex_timedlock((pthread_mutex_t *)m, &ts);

	CHECK(ret != ETIMEDOUT || now_ns() - before >= 19 * MS);
	ts = timespec_of(clock_ns(CLOCK_MONOTONIC) + 20 * MS);
	CHECK_EQ(pthread_mutex_clocklock((pthread_mutex_t *)m, CLOCK_MONOTONIC, &ts), ETIMEDOUT);
	return (void *)(intptr_t)ret;
}

static void *unlocks(void *m)
{
	return (void *)(intptr_t)pthread_mutex_unlock((pthread_mutex_t *)m);
}

static void make(pthread_mutex_t *m, int kind)
{
	pthread_mutexattr_t attr;

	CHECK_PT(pthread_mutexattr_init(&attr));
	CHECK_PT(pthread_mutexattr_settype(&attr, kind));
	CHECK_PT(pthread_mutex_init(m, &attr));
	CHECK_PT(pthread_mutexattr_destroy(&attr));
}

int main(void)
{
	pthread_t t[NR];
	pthread_mutex_t m;

	for (int i = 0; i < NR; i++)
		t[i] = start(hammers, NULL);
	for (int i = 0; i < NR; i++)
		join(t[i]);
	CHECK_EQ(counter, (long)NR * ROUNDS);
	ok("normal: exclusion under load");

	pthread_mutex_lock(&lock);
	CHECK_EQ((intptr_t)join(start(tries, &lock)), EBUSY);
	CHECK_EQ((intptr_t)join(start(times_out, &lock)), ETIMEDOUT);
	pthread_mutex_unlock(&lock);
	CHECK_EQ((intptr_t)join(start(tries, &lock)), 0);
	ok("normal: trylock and timed locks");

	make(&m, PTHREAD_MUTEX_RECURSIVE);
	for (int i = 0; i < 3; i++)
		CHECK_PT(pthread_mutex_lock(&m));
	CHECK_PT(pthread_mutex_unlock(&m));
	CHECK_PT(pthread_mutex_unlock(&m));
	CHECK_EQ((intptr_t)join(start(tries, &m)), EBUSY);
	CHECK_EQ((intptr_t)join(start(unlocks, &m)), EPERM);
	CHECK_PT(pthread_mutex_unlock(&m));
	CHECK_EQ((intptr_t)join(start(tries, &m)), 0);
	CHECK_EQ(pthread_mutex_unlock(&m), EPERM);
	CHECK_PT(pthread_mutex_destroy(&m));
	ok("recursive");

	make(&m, PTHREAD_MUTEX_ERRORCHECK);
	CHECK_PT(pthread_mutex_lock(&m));
	CHECK_EQ(pthread_mutex_lock(&m), EDEADLK);
	CHECK_EQ(pthread_mutex_trylock(&m), EBUSY);
	CHECK_EQ((intptr_t)join(start(unlocks, &m)), EPERM);
	CHECK_PT(pthread_mutex_unlock(&m));
	CHECK_EQ(pthread_mutex_unlock(&m), EPERM);
	CHECK_PT(pthread_mutex_destroy(&m));
	ok("errorcheck");

	make(&m, PTHREAD_MUTEX_ADAPTIVE_NP);
	CHECK_PT(pthread_mutex_lock(&m));
	CHECK_EQ(pthread_mutex_destroy(&m), EBUSY);
	CHECK_PT(pthread_mutex_unlock(&m));
	CHECK_PT(pthread_mutex_destroy(&m));
	ok("adaptive");
	return finish();
}
