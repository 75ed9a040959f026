// SPDX-License-Identifier: Apache-2.0
/* Waits until a time on a clock that is named in the call: in time, late, and with times that are none. */
#include <semaphore.h>

#include "check.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static sem_t sem;
static const struct timespec bad = { 0, SEC };
static int has_tried; /* atomic */

static struct timespec in_ms(clockid_t clock, int ms)
{
	return timespec_of(clock_ns(clock) + ms * MS);
}

/* Another thread holds the locks. */
static void *waits_in_vain(void *arg)
{
	clockid_t clock = *(clockid_t *)arg;
	struct timespec t = in_ms(clock, 5);

	CHECK_EQ(pthread_mutex_clocklock(&mutex, clock, &t), ETIMEDOUT);
	CHECK(clock_ns(clock) >= t.tv_sec * SEC + t.tv_nsec);
	CHECK_EQ(pthread_mutex_clocklock(&mutex, clock, &bad), EINVAL);
	t = in_ms(clock, 5);
	CHECK_EQ(pthread_rwlock_clockrdlock(&rwlock, clock, &t), ETIMEDOUT);
	t = in_ms(clock, 5);
	CHECK_EQ(pthread_rwlock_clockwrlock(&rwlock, clock, &t), ETIMEDOUT);
	CHECK_EQ(pthread_rwlock_clockwrlock(&rwlock, clock, &bad), EINVAL);
	CHECK_EQ(pthread_rwlock_tryrdlock(&rwlock), EBUSY);
	CHECK_EQ(pthread_rwlock_trywrlock(&rwlock), EBUSY);
	t = in_ms(clock, 5);
	CHECK_ERRNO(sem_clockwait(&sem, clock, &t), ETIMEDOUT);
	CHECK_ERRNO(sem_clockwait(&sem, clock, &bad), EINVAL);
	STORE(&has_tried, 1);
	return arg;
}

static void *waits_with_success(void *arg)
{
	clockid_t clock = *(clockid_t *)arg;
	struct timespec t = in_ms(clock, 60000);

	STORE(&has_tried, 1);
	CHECK_PT(pthread_mutex_clocklock(&mutex, clock, &t));
	CHECK_PT(pthread_mutex_unlock(&mutex));
	CHECK_PT(pthread_rwlock_clockrdlock(&rwlock, clock, &t));
	CHECK_PT(pthread_rwlock_unlock(&rwlock));
	CHECK_SYS(sem_clockwait(&sem, clock, &t));
	return arg;
}

static void test_clock(clockid_t clock)
{
	struct timespec t;
	pthread_t thread;
	void *value;

	STORE(&has_tried, 0);
	CHECK_PT(pthread_mutex_lock(&mutex));
	CHECK_PT(pthread_rwlock_wrlock(&rwlock));
	thread = start(waits_in_vain, &clock);
	t = in_ms(clock, 60000);
	CHECK_PT(pthread_clockjoin_np(thread, &value, clock, &t));
	CHECK(value == &clock);

	STORE(&has_tried, 0);
	thread = start(waits_with_success, &clock);
	while (!LOAD(&has_tried))
		sched_yield();
	let_others_block();
	t = in_ms(clock, 5);
	CHECK_EQ(pthread_clockjoin_np(thread, &value, clock, &t), ETIMEDOUT);
	CHECK_EQ(pthread_tryjoin_np(thread, &value), EBUSY);
	t = in_ms(clock, 5);
	CHECK_EQ(pthread_cond_clockwait(&cond, &mutex, clock, &t), ETIMEDOUT);
	CHECK_EQ(pthread_cond_clockwait(&cond, &mutex, clock, &bad), EINVAL);
	CHECK_PT(pthread_mutex_unlock(&mutex));
	CHECK_PT(pthread_rwlock_unlock(&rwlock));
	CHECK_SYS(sem_post(&sem));
	join(thread);
}

int main(void)
{
	struct timespec t = in_ms(CLOCK_MONOTONIC, 5);

	CHECK_SYS(sem_init(&sem, 0, 0));
	test_clock(CLOCK_REALTIME);
	ok("real time");
	test_clock(CLOCK_MONOTONIC);
	ok("monotonic");
	CHECK_EQ(pthread_mutex_clocklock(&mutex, CLOCK_PROCESS_CPUTIME_ID, &t), EINVAL);
	CHECK_ERRNO(sem_clockwait(&sem, CLOCK_PROCESS_CPUTIME_ID, &t), EINVAL);
	CHECK_SYS(sem_destroy(&sem));
	ok("no other clock");
	return finish();
}
