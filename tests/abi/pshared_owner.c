// SPDX-License-Identifier: Apache-2.0
/*
 * Locks that note their owner, shared between processes: a thread of one process is never taken for one of the
 * other, however alike the two are, and waiters of both are served.
 */
#include <semaphore.h>
#include <sys/mman.h>

#include "check.h"

#define NR_KINDS 3
#define NR_ROUNDS 100
#define NR_THREADS 2

static struct shared {
	pthread_mutex_t lock[NR_KINDS];
	sem_t is_held, has_tried;
	int counter[NR_KINDS];
} * s;

static void init(int kind, int type, int protocol)
{
	pthread_mutexattr_t a;

	CHECK_PT(pthread_mutexattr_init(&a));
	CHECK_PT(pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED));
	CHECK_PT(pthread_mutexattr_settype(&a, type));
	CHECK_PT(pthread_mutexattr_setprotocol(&a, protocol));
	CHECK_PT(pthread_mutex_init(&s->lock[kind], &a));
}

static void *holds(void *arg)
{
	for (int kind = 0; kind < NR_KINDS; kind++) {
		CHECK_PT(pthread_mutex_lock(&s->lock[kind]));
		CHECK_SYS(sem_post(&s->is_held));
		CHECK_SYS(sem_wait(&s->has_tried));
		CHECK_PT(pthread_mutex_unlock(&s->lock[kind]));
	}
	return arg;
}

static void *tries(void *arg)
{
	for (int kind = 0; kind < NR_KINDS; kind++) {
		struct timespec soon = timespec_of(clock_ns(CLOCK_REALTIME) + 5 * MS);

		CHECK_SYS(sem_wait(&s->is_held));
		CHECK_EQ(pthread_mutex_trylock(&s->lock[kind]), EBUSY);
		CHECK_EQ(pthread_mutex_timedlock(&s->lock[kind], &soon), ETIMEDOUT);
		CHECK_SYS(sem_post(&s->has_tried));
		CHECK_PT(pthread_mutex_lock(&s->lock[kind]));
		CHECK_PT(pthread_mutex_unlock(&s->lock[kind]));
	}
	return arg;
}

static void *counts(void *arg)
{
	for (int i = 0; i < NR_ROUNDS; i++) {
		for (int kind = 0; kind < NR_KINDS; kind++) {
			int seen;

			CHECK_PT(pthread_mutex_lock(&s->lock[kind]));
			seen = s->counter[kind];
			if (i % 8 == 0)
				sleep_ns(20000);
			s->counter[kind] = seen + 1;
			CHECK_PT(pthread_mutex_unlock(&s->lock[kind]));
		}
	}
	return arg;
}

/* In two processes at once, which have made the same threads in the same order. */
static void in_two_processes(void *(*first)(void *), void *(*second)(void *), int nr)
{
	pid_t pid = fork();
	pthread_t t[NR_THREADS];

	for (int i = 0; i < nr; i++)
		t[i] = start(pid ? first : second, NULL);
	for (int i = 0; i < nr; i++)
		join(t[i]);
	if (pid == 0)
		_exit(finish());
	reap(pid);
}

int main(void)
{
	s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK_SYS(sem_init(&s->is_held, 1, 0));
	CHECK_SYS(sem_init(&s->has_tried, 1, 0));
	init(0, PTHREAD_MUTEX_ERRORCHECK, PTHREAD_PRIO_NONE);
	init(1, PTHREAD_MUTEX_RECURSIVE, PTHREAD_PRIO_NONE);
	init(2, PTHREAD_MUTEX_ERRORCHECK, PTHREAD_PRIO_INHERIT);
	in_two_processes(holds, tries, 1);
	ok("an owner in another process");
	in_two_processes(counts, counts, NR_THREADS);
	for (int kind = 0; kind < NR_KINDS; kind++)
		CHECK_EQ(s->counter[kind], 2 * NR_THREADS * NR_ROUNDS);
	ok("waiters in two processes");
	return finish();
}
