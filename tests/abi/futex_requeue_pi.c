// SPDX-License-Identifier: Apache-2.0
/*
 * FUTEX_WAIT_REQUEUE_PI and FUTEX_CMP_REQUEUE_PI: a condition variable whose waiters come back owning a lock with
 * priority inheritance.
 */
#include <linux/futex.h>
#include <stdbool.h>
#include "check.h"

#define NR 8
#define ROUNDS 50

static int sequence, lock, nr_woken, nr_inside;

static long futex(int *addr, int op, int value, void *value2, int *addr2, int value3)
{
	return syscall(SYS_futex, addr, op, value, value2, addr2, value3);
}

static void own(int *word)
{
	int none = 0, self = (int)syscall(SYS_gettid);

	if (!__atomic_compare_exchange_n(word, &none, self, false, __ATOMIC_ACQUIRE,
					 __ATOMIC_RELAXED))
		CHECK_SYS(futex(word, FUTEX_LOCK_PI_PRIVATE, 0, NULL, NULL, 0));
	CHECK_EQ(LOAD(word) & FUTEX_TID_MASK, self);
}

static void disown(int *word)
{
	int self = (int)syscall(SYS_gettid);

	if (!__atomic_compare_exchange_n(word, &self, 0, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		CHECK_SYS(futex(word, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL, NULL, 0));
}

static void *waits(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		int seen;
		long ret;

		own(&lock);
		seen = LOAD(&sequence);
		disown(&lock);
		ret = futex(&sequence, FUTEX_WAIT_REQUEUE_PI_PRIVATE, seen, NULL, &lock, 0);
		if (ret < 0) {
			CHECK(errno == EAGAIN); /* the word had changed */
			own(&lock);
		}
		CHECK_EQ(LOAD(&lock) & FUTEX_TID_MASK, syscall(SYS_gettid));
		CHECK_EQ(++nr_inside, 1);
		sched_yield();
		CHECK_EQ(nr_inside--, 1);
		ADD(&nr_woken, 1);
		disown(&lock);
	}
	return arg;
}

static void broadcasts(bool owns)
{
	int seen;

	if (owns)
		own(&lock);
	seen = ADD(&sequence, 1);
	CHECK(futex(&sequence, FUTEX_CMP_REQUEUE_PI_PRIVATE, 1, (void *)(uintptr_t)NR, &lock,
		    seen) >= 0 ||
	      errno == EAGAIN);
	if (owns)
		disown(&lock);
}

static int nr_back, nr_failed;

static void *waits_once(void *arg)
{
	long ret = futex(&sequence, FUTEX_WAIT_REQUEUE_PI_PRIVATE, LOAD(&sequence), NULL, &lock, 0);

	CHECK_EQ(ret, 0);
	if (ret != 0) {
		ADD(&nr_failed, 1);
		return NULL;
	}
	CHECK_EQ(LOAD(&lock) & FUTEX_TID_MASK, syscall(SYS_gettid));
	ADD(&nr_back, 1);
	disown(&lock);
	return arg;
}

/* All of them go over to the lock, nobody comes back before it is free, and then one after the other, owning it. */
static void move_all(int at_once)
{
	pthread_t t[NR];

	nr_back = 0;
	own(&lock);
	for (int i = 0; i < NR; i++)
		t[i] = start(waits_once, NULL);
	for (int moved = 0; moved + LOAD(&nr_failed) < NR; sched_yield()) {
		long ret = futex(&sequence, FUTEX_CMP_REQUEUE_PI_PRIVATE, 1,
				 (void *)(uintptr_t)(at_once ? NR : 0), &lock, LOAD(&sequence));

		CHECK_SYS(ret);
		CHECK(at_once || ret <= 1);
		if (ret > 0)
			moved += (int)ret;
	}
	CHECK_EQ(futex(&sequence, FUTEX_CMP_REQUEUE_PI_PRIVATE, 1, (void *)(uintptr_t)NR, &lock,
		       LOAD(&sequence)),
		 0);
	let_others_block();
	CHECK_EQ(LOAD(&nr_back), 0);
	CHECK_EQ(LOAD(&lock) & FUTEX_TID_MASK, syscall(SYS_gettid));
	disown(&lock);
	for (int i = 0; i < NR; i++)
		join(t[i]);
	CHECK_EQ(nr_back, NR);
	CHECK_EQ(lock, 0);
}

/* Where the waiter wants another lock than that it is to be moved to, nothing is moved. */
static void move_to_another(void)
{
	static int other;
	pthread_t t;
	long ret;

	nr_back = 0;
	own(&lock);
	t = start(waits_once, NULL);
	do {
		sched_yield();
		ret = futex(&sequence, FUTEX_CMP_REQUEUE_PI_PRIVATE, 1, (void *)1, &other,
			    LOAD(&sequence));
	} while (ret == 0);
	CHECK_EQ(ret, -1);
	CHECK_EQ(errno, EINVAL);
	CHECK_EQ(LOAD(&nr_back), 0);
	CHECK_EQ(futex(&sequence, FUTEX_CMP_REQUEUE_PI_PRIVATE, 1, (void *)1, &lock,
		       LOAD(&sequence)),
		 1);
	disown(&lock);
	join(t);
	CHECK_EQ(nr_back, 1);
}

static void *expires(void *arg)
{
	struct timespec soon;

	clock_gettime(CLOCK_MONOTONIC, &soon);
	soon.tv_nsec += 10 * MS;
	soon.tv_sec += soon.tv_nsec / SEC;
	soon.tv_nsec %= SEC;
	CHECK_EQ(futex(&sequence, FUTEX_WAIT_REQUEUE_PI_PRIVATE, LOAD(&sequence), &soon, &lock, 0),
		 -1);
	CHECK_EQ(errno, ETIMEDOUT);
	CHECK_EQ(futex(&sequence, FUTEX_WAIT_REQUEUE_PI_PRIVATE, LOAD(&sequence) + 1, NULL, &lock,
		       0),
		 -1);
	CHECK_EQ(errno, EAGAIN);
	CHECK_EQ(futex(&sequence, FUTEX_WAIT_REQUEUE_PI_PRIVATE, 0, NULL, &sequence, 0), -1);
	CHECK_EQ(errno, EINVAL);
	CHECK_EQ(futex(&sequence, FUTEX_CMP_REQUEUE_PI_PRIVATE, 2, (void *)1, &lock,
		       LOAD(&sequence)),
		 -1);
	CHECK_EQ(errno, EINVAL);
	CHECK_EQ(futex(&sequence, FUTEX_CMP_REQUEUE_PI_PRIVATE, 1, (void *)1, &lock,
		       LOAD(&sequence)),
		 0);
	CHECK_EQ(futex(&sequence, FUTEX_CMP_REQUEUE_PI_PRIVATE, 1, (void *)1, &lock,
		       LOAD(&sequence) + 1),
		 -1);
	CHECK_EQ(errno, EAGAIN);
	return arg;
}

int main(void)
{
	pthread_t t[NR];

	CHECK_PT(pthread_create(&t[0], NULL, expires, NULL));
	join(t[0]);
	ok("errors and a time-out");
	move_to_another();
	move_all(1);
	move_all(0);
	ok("all are moved, and none comes back without the lock");
	for (int i = 0; i < NR; i++)
		CHECK_PT(pthread_create(&t[i], NULL, waits, NULL));
	for (int i = 0; LOAD(&nr_woken) < NR * ROUNDS; i++) {
		broadcasts(i % 2);
		sched_yield();
	}
	for (int i = 0; i < NR; i++)
		join(t[i]);
	CHECK_EQ(lock, 0);
	ok("every waiter came back owning the lock");
	return finish();
}
