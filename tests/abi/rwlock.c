// SPDX-License-Identifier: Apache-2.0
/*
 * Read-write locks: many readers or one writer, try and timed variants, no one starves for ever.
 */
#include "check.h"

#define NR 12
#define ROUNDS 3000

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static int nr_readers, nr_writers, first, second;
static pthread_barrier_t meeting;

static void *reads(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		CHECK_PT(pthread_rwlock_rdlock(&lock));
		ADD(&nr_readers, 1);
		CHECK_EQ(LOAD(&nr_writers), 0);
		CHECK_EQ(first, second);
		if (i % 64 == 0)
			sched_yield();
		ADD(&nr_readers, -1);
		CHECK_PT(pthread_rwlock_unlock(&lock));
	}
	return arg;
}

static void *writes(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		CHECK_PT(pthread_rwlock_wrlock(&lock));
		CHECK_EQ(ADD(&nr_writers, 1), 1);
		CHECK_EQ(LOAD(&nr_readers), 0);
		first++;
		if (i % 64 == 0)
			sched_yield();
		second++;
		ADD(&nr_writers, -1);
		CHECK_PT(pthread_rwlock_unlock(&lock));
	}
	return arg;
}

/* All hold the read lock at the same time, or the barrier never opens. */
static void *reads_together(void *arg)
{
	CHECK_PT(pthread_rwlock_rdlock(&lock));
	pthread_barrier_wait(&meeting);
	CHECK_EQ(pthread_rwlock_trywrlock(&lock), EBUSY);
	pthread_barrier_wait(&meeting);
	CHECK_PT(pthread_rwlock_unlock(&lock));
	return arg;
}

static void *tries_all(void *arg)
{
	int want = (int)(intptr_t)arg;
	struct timespec ts = timespec_of(clock_ns(CLOCK_REALTIME) + 10 * MS);

	CHECK_EQ(pthread_rwlock_trywrlock(&lock), EBUSY);
	CHECK_EQ(pthread_rwlock_timedwrlock(&lock, &ts), ETIMEDOUT);
	CHECK(clock_ns(CLOCK_REALTIME) >= ts.tv_sec * SEC + ts.tv_nsec);
	CHECK_EQ(pthread_rwlock_timedrdlock(&lock, &ts), want);
	if (want == 0)
		pthread_rwlock_unlock(&lock);
	return NULL;
}

int main(void)
{
	pthread_t t[NR];
	pthread_rwlockattr_t attr;

	for (int kind = 0; kind < 2; kind++) {
		for (int i = 0; i < NR; i++)
			t[i] = start(i % 4 ? reads : writes, NULL);
		for (int i = 0; i < NR; i++)
			join(t[i]);
		CHECK_EQ(first, second);
		CHECK_EQ(first, (kind + 1) * NR / 4 * ROUNDS);
		ok(kind ? "writers preferred" : "readers preferred");
		pthread_rwlockattr_init(&attr);
		pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
		pthread_rwlock_destroy(&lock);
		CHECK_PT(pthread_rwlock_init(&lock, &attr));
	}
	pthread_barrier_init(&meeting, NULL, NR);
	for (int i = 0; i < NR; i++)
		t[i] = start(reads_together, NULL);
	for (int i = 0; i < NR; i++)
		join(t[i]);
	ok("12 readers at once");

	CHECK_PT(pthread_rwlock_rdlock(&lock));
	join(start(tries_all, (void *)0));
	CHECK_PT(pthread_rwlock_unlock(&lock));
	CHECK_PT(pthread_rwlock_wrlock(&lock));
	CHECK_EQ(pthread_rwlock_wrlock(&lock), EDEADLK);
	join(start(tries_all, (void *)ETIMEDOUT));
	CHECK_PT(pthread_rwlock_unlock(&lock));
	ok("try and timed variants");
	return finish();
}
