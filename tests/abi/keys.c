// SPDX-License-Identifier: Apache-2.0
/*
 * Thread-specific data: separate values, destructors that block, set again and repeat.
 */
#include "check.h"

#define NR 30

static pthread_key_t key, again_key, keys[100];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int nr_destroyed, nr_again;
static long sum;

static void destroys(void *value)
{
	pthread_mutex_lock(&lock);
	nr_destroyed++;
	sum += (long)(intptr_t)value;
	sched_yield();
	pthread_mutex_unlock(&lock);
}

static void sets_again(void *value)
{
	intptr_t left = (intptr_t)value - 1;

	ADD(&nr_again, 1);
	if (left)
		pthread_setspecific(again_key, (void *)left);
}

static void *uses(void *arg)
{
	CHECK(pthread_getspecific(key) == NULL);
	CHECK_PT(pthread_setspecific(key, arg));
	CHECK_PT(pthread_setspecific(again_key, (void *)3));
	for (int i = 0; i < 100; i++)
		CHECK_PT(pthread_setspecific(keys[i], (void *)((intptr_t)arg + i)));
	for (int round = 0; round < 20; round++) {
		sched_yield();
		CHECK(pthread_getspecific(key) == arg);
		for (int i = 0; i < 100; i++)
			CHECK(pthread_getspecific(keys[i]) == (void *)((intptr_t)arg + i));
	}
	return NULL;
}

int main(void)
{
	pthread_t t[NR];

	CHECK_PT(pthread_key_create(&key, destroys));
	CHECK_PT(pthread_key_create(&again_key, sets_again));
	for (int i = 0; i < 100; i++)
		CHECK_PT(pthread_key_create(&keys[i], NULL));
	for (intptr_t i = 0; i < NR; i++)
		t[i] = start(uses, (void *)(i + 1));
	for (int i = 0; i < NR; i++)
		join(t[i]);
	CHECK_EQ(nr_destroyed, NR);
	CHECK_EQ(sum, NR * (NR + 1) / 2);
	ok("a destructor for every thread");
	CHECK_EQ(nr_again, 3 * NR);
	ok("a destructor that sets the value again is repeated");
	CHECK_PT(pthread_key_delete(key));
	CHECK_EQ(pthread_setspecific(key, t), EINVAL);
	ok("deleted key");
	return finish();
}
