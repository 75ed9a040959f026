// SPDX-License-Identifier: Apache-2.0
/*
 * Robust mutexes: the owner ends with the lock held; EOWNERDEAD, consistent, ENOTRECOVERABLE.
 */
#include "check.h"

static pthread_mutex_t lock;

static void make(int protocol)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	CHECK_PT(pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST));
	CHECK_PT(pthread_mutexattr_setprotocol(&attr, protocol));
	CHECK_PT(pthread_mutex_init(&lock, &attr));
	pthread_mutexattr_destroy(&attr);
}

static void *ends_with_lock(void *arg)
{
	CHECK_PT(pthread_mutex_lock(&lock));
	if (arg) {
		STORE((int *)arg, 1);
		let_others_block();
	}
	return NULL;
}

static void *locks(void *is_owned)
{
	while (!LOAD((int *)is_owned))
		sched_yield();
	int ret = pthread_mutex_lock(&lock);

	if (ret == EOWNERDEAD)
		pthread_mutex_consistent(&lock);
	if (ret == 0 || ret == EOWNERDEAD)
		pthread_mutex_unlock(&lock);
	return (void *)(intptr_t)ret;
}

static void try_all(const char *name)
{
	pthread_t t[4];
	int dead = 0, is_owned = 0;

	join(start(ends_with_lock, NULL));
	CHECK_EQ(pthread_mutex_lock(&lock), EOWNERDEAD);
	CHECK_PT(pthread_mutex_consistent(&lock));
	CHECK_PT(pthread_mutex_unlock(&lock));
	CHECK_PT(pthread_mutex_lock(&lock));
	CHECK_PT(pthread_mutex_unlock(&lock));
	CHECK_EQ(pthread_mutex_consistent(&lock), EINVAL);

	pthread_t owner = start(ends_with_lock, &is_owned);
	for (int i = 0; i < 4; i++)
		t[i] = start(locks, &is_owned);
	join(owner);
	for (int i = 0; i < 4; i++)
		dead += (intptr_t)join(t[i]) == EOWNERDEAD;
	CHECK_EQ(dead, 1);

	for (int i = 0; i < 50; i++) {
		join(start(ends_with_lock, NULL));
		CHECK_EQ(pthread_mutex_trylock(&lock), EOWNERDEAD);
		CHECK_PT(pthread_mutex_consistent(&lock));
		CHECK_PT(pthread_mutex_unlock(&lock));
	}

	join(start(ends_with_lock, NULL));
	CHECK_EQ(pthread_mutex_lock(&lock), EOWNERDEAD);
	CHECK_PT(pthread_mutex_unlock(&lock));
	CHECK_EQ(pthread_mutex_lock(&lock), ENOTRECOVERABLE);
	CHECK_PT(pthread_mutex_destroy(&lock));
	ok(name);
}

int main(void)
{
	make(PTHREAD_PRIO_NONE);
	try_all("robust");
	make(PTHREAD_PRIO_INHERIT);
	try_all("robust with priority inheritance");
	return finish();
}
