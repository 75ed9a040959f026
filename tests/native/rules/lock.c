// SPDX-License-Identifier: Apache-2.0
/* Locks of libc and of C11 may be held while the thread waits: for each other, for time, for libweft. */
#include "rules.h"

#include <pthread.h>
#include <semaphore.h>
#include <threads.h>
#include <weft/weft.h>

/* The ThreadSanitizer of GCC 12 does not see those of C11. */
#ifdef __SANITIZE_THREAD__
#define KNOWS_MTX false
#else
#define KNOWS_MTX true
#endif

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, own[RULE_NR];
static pthread_mutex_t again = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t change = PTHREAD_COND_INITIALIZER;
static mtx_t plain;
static sem_t semaphore;
static pthread_once_t made = PTHREAD_ONCE_INIT;

/* Each is protected by the lock of its name. */
static int by_mutex, by_again, by_rwlock, by_plain, by_semaphore, nr_changes;

static void make(void)
{
	CHECK_EQ(mtx_init(&plain, mtx_plain), thrd_success);
	CHECK_EQ(sem_init(&semaphore, 0, 1), 0);
	for (int i = 0; i < RULE_NR; i++)
		CHECK_EQ(pthread_mutex_init(&own[i], NULL), 0);
}

/* A wait between the read and the write shows whoever else is in. */
static void add_one(int *n)
{
	int seen = *n;

	rule_wait();
	*n = seen + 1;
}

static void wait_for_a_change(void)
{
	struct timespec soon;

	CHECK_EQ(pthread_mutex_lock(&mutex), 0);
	add_one(&nr_changes);
	pthread_cond_broadcast(&change);
	timespec_get(&soon, TIME_UTC);
	soon.tv_nsec = soon.tv_nsec < 999000000 ? soon.tv_nsec + 1000000 : 999999999;
	(void)pthread_cond_timedwait(&change, &mutex, &soon);
	CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
}

static void holds_locks(int nr)
{
	pthread_once(&made, make);
	/* Over turns of other fibers of this thread, which must not want it. */
	CHECK_EQ(pthread_mutex_lock(&own[nr]), 0);
	for (int i = 0; i < 5; i++) {
		CHECK_EQ(pthread_mutex_lock(&mutex), 0);
		add_one(&by_mutex);
		CHECK_EQ(pthread_mutex_lock(&again), 0);
		CHECK_EQ(pthread_mutex_lock(&again), 0);
		add_one(&by_again);
		CHECK_EQ(pthread_mutex_unlock(&again), 0);
		CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
		rule_wait();
		CHECK_EQ(pthread_mutex_unlock(&again), 0);
		rule_turn();

		CHECK_EQ(pthread_rwlock_rdlock(&rwlock), 0);
		CHECK(by_rwlock >= 0);
		rule_wait();
		CHECK_EQ(pthread_rwlock_unlock(&rwlock), 0);
		CHECK_EQ(pthread_rwlock_wrlock(&rwlock), 0);
		add_one(&by_rwlock);
		CHECK_EQ(pthread_rwlock_unlock(&rwlock), 0);
		rule_turn();

		if (KNOWS_MTX) {
			CHECK_EQ(mtx_lock(&plain), thrd_success);
			add_one(&by_plain);
			CHECK_EQ(mtx_unlock(&plain), thrd_success);
		}
		CHECK_EQ(sem_wait(&semaphore), 0);
		add_one(&by_semaphore);
		CHECK_EQ(sem_post(&semaphore), 0);
		wait_for_a_change();
		rule_turn();
	}
	CHECK_EQ(pthread_mutex_unlock(&own[nr]), 0);
}

static void counts_are_right(enum rule_place place)
{
	int *const counts[] = { &by_mutex, &by_again,     &by_rwlock,
				&by_plain, &by_semaphore, &nr_changes };

	(void)place;
	for (int i = 0; i < 6; i++) {
		CHECK_EQ(*counts[i], counts[i] != &by_plain || KNOWS_MTX ? 5 * RULE_NR : 0);
		*counts[i] = 0;
	}
}

RULE(locks_are_held_over_waits, holds_locks, counts_are_right)
