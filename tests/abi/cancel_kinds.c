// SPDX-License-Identifier: Apache-2.0
/*
 * Cancellation beyond blocking calls: asynchronous while spinning, disabled, testcancel, oneself,
 * a mutex is no cancellation point, keys are destroyed.
 */
#include <semaphore.h>
#include "tasks.h"

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

/* Another process could post these: nothing but the kernel can wait for them. */
#define NR_SHARED 24
#define ROUNDS 100

static sem_t shared;
static int nr_waiting, nr_taken;

static void *waits_for_shared(void *arg)
{
	pthread_cleanup_push(cleans, NULL);
	ADD(&nr_waiting, 1);
	while (sem_wait(&shared) == -1)
		CHECK_EQ(errno, EINTR);
	ADD(&nr_taken, 1);
	pthread_cleanup_pop(0);
	return arg;
}

static void cancel_shared(void)
{
	pthread_t t[NR_SHARED];

	for (int i = 0; i < NR_SHARED; i++)
		t[i] = start(waits_for_shared, NULL);
	while (LOAD(&nr_waiting) < NR_SHARED)
		sched_yield();
	let_others_block();
	CHECK(!waits_in_ring() || nr_kernel_threads() < NR_SHARED / 2);
	for (int i = 0; i < NR_SHARED; i++)
		CHECK_PT(pthread_cancel(t[i]));
	for (int i = 0; i < NR_SHARED; i++)
		CHECK(join(t[i]) == PTHREAD_CANCELED);
	CHECK_EQ(cleaned, NR_SHARED);
	/* nothing of them waits any more */
	CHECK_SYS(sem_post(&shared));
	CHECK_SYS(sem_wait(&shared));
	CHECK_EQ(nr_taken, 0);
}

/* Either it was cancelled, or it took what was posted. */
static void cancel_and_post(void)
{
	int value = 0, nr_cancelled = 0;

	nr_taken = 0;
	for (int i = 0; i < ROUNDS; i++) {
		pthread_t t[4];

		STORE(&nr_waiting, 0);
		for (int k = 0; k < 4; k++)
			t[k] = start(waits_for_shared, NULL);
		while (LOAD(&nr_waiting) < 4)
			sched_yield();
		for (int k = 0; k < 4; k++) {
			CHECK_PT(pthread_cancel(t[k]));
			CHECK_SYS(sem_post(&shared));
		}
		for (int k = 0; k < 4; k++)
			nr_cancelled += join(t[k]) == PTHREAD_CANCELED;
	}
	CHECK_SYS(sem_getvalue(&shared, &value));
	CHECK_EQ(nr_taken + nr_cancelled, 4 * ROUNDS);
	CHECK_EQ(nr_taken + value, 4 * ROUNDS);
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

	cleaned = 0;
	CHECK_SYS(sem_init(&shared, 1, 0));
	cancel_shared();
	ok("waiting for what other processes may post");
	cancel_and_post();
	ok("cancelled and posted at once");
	return finish();
}
