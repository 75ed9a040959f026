// SPDX-License-Identifier: Apache-2.0
/*
 * Cancellation beyond blocking calls: asynchronous while spinning, disabled, testcancel, oneself,
 * a mutex is no cancellation point, keys are destroyed.
 */
#include <semaphore.h>
#include "check.h"

static int is_ready, go, cleaned, destroyed;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_key_t key;
static sem_t sem;

static void cleans(void *arg)
{
	(void)arg;
	ADD(&cleaned, 1);
}

static void destroys(void *arg)
{
	(void)arg;
	ADD(&destroyed, 1);
}

static void *spins_async(void *arg)
{
	pthread_setspecific(key, &key);
	pthread_cleanup_push(cleans, NULL);
	CHECK_PT(pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL));
	STORE(&is_ready, 1);
	for (;;)
		__asm__ volatile("");
	pthread_cleanup_pop(0);
	return arg;
}

static void *is_disabled(void *arg)
{
	int old;

	CHECK_PT(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old));
	CHECK_EQ(old, PTHREAD_CANCEL_ENABLE);
	STORE(&is_ready, 1);
	while (sem_wait(&sem) == -1)
		;
	pthread_testcancel();
	sleep_ns(MS);
	STORE(&go, 1);
	pthread_cleanup_push(cleans, NULL);
	CHECK_PT(pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL));
	pthread_testcancel();
	CHECK(!"not cancelled");
	pthread_cleanup_pop(0);
	return arg;
}

static void *waits_for_lock(void *arg)
{
	STORE(&is_ready, 1);
	pthread_mutex_lock(&lock);
	STORE(&go, 1);
	pthread_mutex_unlock(&lock);
	pthread_testcancel();
	return arg;
}

static void *cancels_itself(void *arg)
{
	pthread_cleanup_push(cleans, NULL);
	CHECK_PT(pthread_cancel(pthread_self()));
	CHECK_EQ(cleaned, 0);
	pthread_testcancel();
	pthread_cleanup_pop(0);
	return arg;
}

static pthread_t begin(void *(*fn)(void *))
{
	is_ready = go = cleaned = destroyed = 0;
	pthread_t t = start(fn, NULL);

	while (fn != cancels_itself && !LOAD(&is_ready))
		sched_yield();
	return t;
}

int main(void)
{
	sem_init(&sem, 0, 0);
	pthread_key_create(&key, destroys);
	for (int i = 0; i < 10; i++) {
		pthread_t t = begin(spins_async);

		CHECK_PT(pthread_cancel(t));
		CHECK(join(t) == PTHREAD_CANCELED);
		CHECK_EQ(cleaned, 1);
		CHECK_EQ(destroyed, 1);
	}
	ok("asynchronous, in a loop without calls");

	for (int i = 0; i < 5; i++) {
		pthread_t t = begin(is_disabled);

		CHECK_PT(pthread_cancel(t));
		let_others_block();
		CHECK_EQ(LOAD(&go), 0);
		sem_post(&sem);
		CHECK(join(t) == PTHREAD_CANCELED);
		CHECK_EQ(go, 1);
		CHECK_EQ(cleaned, 1);
	}
	ok("disabled, then enabled");

	pthread_mutex_lock(&lock);
	pthread_t t = begin(waits_for_lock);
	CHECK_PT(pthread_cancel(t));
	let_others_block();
	pthread_mutex_unlock(&lock);
	CHECK(join(t) == PTHREAD_CANCELED);
	CHECK_EQ(go, 1);
	ok("waiting for a mutex goes on");

	t = begin(cancels_itself);
	CHECK(join(t) == PTHREAD_CANCELED);
	CHECK_EQ(cleaned, 1);
	ok("oneself");
	return finish();
}
