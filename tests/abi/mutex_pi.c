// SPDX-License-Identifier: Apache-2.0
/*
 * Priority-inheritance mutexes: exclusion, errors, timeouts, and condition variables on top.
 */
#include "check.h"

#define NR 6
#define ROUNDS 3000

static pthread_mutex_t lock;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static long counter;
static int is_inside, turn;

static void make(pthread_mutex_t *m, int kind)
{
	pthread_mutexattr_t attr;

	CHECK_PT(pthread_mutexattr_init(&attr));
	CHECK_PT(pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT));
	CHECK_PT(pthread_mutexattr_settype(&attr, kind));
	CHECK_PT(pthread_mutex_init(m, &attr));
	pthread_mutexattr_destroy(&attr);
}

static void *hammers(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		CHECK_PT(pthread_mutex_lock(&lock));
		CHECK_EQ(is_inside++, 0);
		counter++;
		if (i % 16 == 0)
			sched_yield();
		is_inside--;
		CHECK_PT(pthread_mutex_unlock(&lock));
	}
	return arg;
}

static void *times_out(void *m)
{
	struct timespec ts = timespec_of(clock_ns(CLOCK_REALTIME) + 20 * MS);

	CHECK_EQ(pthread_mutex_trylock((pthread_mutex_t *)m), EBUSY);
	return (void *)(intptr_t)pthread_mutex_timedlock((pthread_mutex_t *)m, &ts);
}

static void *unlocks(void *m)
{
	return (void *)(intptr_t)pthread_mutex_unlock((pthread_mutex_t *)m);
}

static void *takes_turns(void *arg)
{
	int mine = (int)(intptr_t)arg;

	pthread_mutex_lock(&lock);
	for (int i = 0; i < 200; i++) {
		while (turn % 2 != mine)
			CHECK_PT(pthread_cond_wait(&cond, &lock));
		turn++;
		pthread_cond_broadcast(&cond);
	}
	pthread_mutex_unlock(&lock);
	return NULL;
}

int main(void)
{
	pthread_t t[NR];
	pthread_mutex_t m;

	have_threads();
	make(&lock, PTHREAD_MUTEX_NORMAL);
	for (int i = 0; i < NR; i++)
		t[i] = start(hammers, NULL);
	for (int i = 0; i < NR; i++)
		join(t[i]);
	CHECK_EQ(counter, (long)NR * ROUNDS);
	ok("exclusion under load");

	pthread_mutex_lock(&lock);
	CHECK_EQ((intptr_t)join(start(times_out, &lock)), ETIMEDOUT);
	pthread_mutex_unlock(&lock);
	ok("trylock and timedlock");

	t[0] = start(takes_turns, (void *)0);
	t[1] = start(takes_turns, (void *)1);
	join(t[0]);
	join(t[1]);
	CHECK_EQ(turn, 400);
	ok("condition variable with a PI mutex");

	make(&m, PTHREAD_MUTEX_ERRORCHECK);
	CHECK_PT(pthread_mutex_lock(&m));
	CHECK_EQ(pthread_mutex_lock(&m), EDEADLK);
	CHECK_EQ((intptr_t)join(start(unlocks, &m)), EPERM);
	CHECK_PT(pthread_mutex_unlock(&m));
	CHECK_EQ(pthread_mutex_unlock(&m), EPERM);
	make(&m, PTHREAD_MUTEX_RECURSIVE);
	CHECK_PT(pthread_mutex_lock(&m));
	CHECK_PT(pthread_mutex_lock(&m));
	CHECK_PT(pthread_mutex_unlock(&m));
	CHECK_EQ((intptr_t)join(start(times_out, &m)), ETIMEDOUT);
	CHECK_PT(pthread_mutex_unlock(&m));
	CHECK_PT(pthread_mutex_destroy(&m));
	ok("errorcheck and recursive");
	return finish();
}
