// SPDX-License-Identifier: Apache-2.0
/*
 * Timed condition waits on both clocks: never early, woken in time, the mutex held on return.
 */
#include "check.h"

static pthread_mutex_t lock;
static pthread_cond_t realtime = PTHREAD_COND_INITIALIZER, monotonic;
static int is_set;

static void *sets(void *cond)
{
	pthread_mutex_lock(&lock);
	is_set = 1;
	pthread_cond_signal((pthread_cond_t *)cond);
	pthread_mutex_unlock(&lock);
	return NULL;
}

static void *waits_long(void *arg)
{
	struct timespec ts = timespec_of(now_ns() + 3600 * SEC);

	pthread_mutex_lock(&lock);
	++*(int *)arg;
	int ret = 0;

	while (!is_set && ret == 0)
		ret = pthread_cond_timedwait(&monotonic, &lock, &ts);
	pthread_mutex_unlock(&lock);
	return (void *)(intptr_t)ret;
}

static void try_timeout(pthread_cond_t *cond, clockid_t clock)
{
	for (int i = 0; i < 5; i++) {
		int64_t deadline = clock_ns(clock) + i * 5 * MS;
		struct timespec ts = timespec_of(deadline);
		int ret = 0;

		pthread_mutex_lock(&lock);
		while (ret == 0)
			ret = pthread_cond_timedwait(cond, &lock, &ts);
		CHECK_EQ(ret, ETIMEDOUT);
		CHECK(clock_ns(clock) >= deadline);
		CHECK_EQ(pthread_mutex_trylock(&lock), EBUSY);
		CHECK_PT(pthread_mutex_unlock(&lock));
	}
}

static void try_wake(pthread_cond_t *cond, clockid_t clock)
{
	struct timespec ts = timespec_of(clock_ns(clock) + 3600 * SEC);
	int ret = 0;

	is_set = 0;
	pthread_mutex_lock(&lock);
	pthread_t t = start(sets, cond);
	while (!is_set && ret == 0)
		ret = pthread_cond_timedwait(cond, &lock, &ts);
	CHECK_EQ(ret, 0);
	pthread_mutex_unlock(&lock);
	join(t);
}

int main(void)
{
	pthread_condattr_t attr;
	pthread_t t[30];
	int nr_waiting = 0;

	have_threads();
	pthread_mutex_init(&lock, NULL);
	pthread_condattr_init(&attr);
	CHECK_PT(pthread_condattr_setclock(&attr, CLOCK_MONOTONIC));
	CHECK_PT(pthread_cond_init(&monotonic, &attr));

	try_timeout(&realtime, CLOCK_REALTIME);
	try_timeout(&monotonic, CLOCK_MONOTONIC);
	ok("timeouts, not early");

	try_wake(&realtime, CLOCK_REALTIME);
	try_wake(&monotonic, CLOCK_MONOTONIC);
	ok("woken long before the deadline");

	struct timespec ts = timespec_of(now_ns() + 5 * MS);
	pthread_mutex_lock(&lock);
	int ret;
	do
		ret = pthread_cond_clockwait(&realtime, &lock, CLOCK_MONOTONIC, &ts);
	while (ret == 0);
	CHECK_EQ(ret, ETIMEDOUT);
	ts.tv_nsec = SEC;
	CHECK_EQ(pthread_cond_timedwait(&monotonic, &lock, &ts), EINVAL);
	pthread_mutex_unlock(&lock);
	ok("clockwait, and EINVAL for a bad time");

	is_set = 0;
	for (int i = 0; i < 30; i++)
		t[i] = start(waits_long, &nr_waiting);
	for (;;) {
		pthread_mutex_lock(&lock);
		if (nr_waiting == 30)
			break;
		pthread_mutex_unlock(&lock);
		sched_yield();
	}
	is_set = 1;
	pthread_cond_broadcast(&monotonic);
	pthread_mutex_unlock(&lock);
	for (int i = 0; i < 30; i++)
		CHECK_EQ((intptr_t)join(t[i]), 0);
	ok("broadcast ends 30 timed waits");
	return finish();
}
