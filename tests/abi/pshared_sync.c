// SPDX-License-Identifier: Apache-2.0
/*
 * Process-shared mutex, condition variable, semaphore and barrier between parent and child,
 * used from threads on both sides.
 */
#include <semaphore.h>
#include <sys/mman.h>
#include "check.h"

#define ROUNDS 300

struct area {
	pthread_mutex_t lock;
	pthread_cond_t cond;
	pthread_barrier_t barrier;
	sem_t ping, pong;
	int turn, counter, at_barrier;
};

static struct area *a;

static void *counts(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		CHECK_PT(pthread_mutex_lock(&a->lock));
		int seen = a->counter;

		if (i % 32 == 0)
			sched_yield();
		a->counter = seen + 1;
		CHECK_PT(pthread_mutex_unlock(&a->lock));
	}
	return arg;
}

static void *takes_turns(void *arg)
{
	int mine = (int)(intptr_t)arg;

	for (int i = 0; i < ROUNDS; i++) {
		pthread_mutex_lock(&a->lock);
		while (a->turn % 2 != mine)
			CHECK_PT(pthread_cond_wait(&a->cond, &a->lock));
		a->turn++;
		pthread_cond_broadcast(&a->cond);
		pthread_mutex_unlock(&a->lock);
	}
	return NULL;
}

static void *plays(void *arg)
{
	int is_child = (int)(intptr_t)arg;

	for (int i = 0; i < ROUNDS; i++) {
		CHECK_SYS(sem_wait(is_child ? &a->ping : &a->pong));
		CHECK_SYS(sem_post(is_child ? &a->pong : &a->ping));
	}
	return NULL;
}

static void *meets(void *arg)
{
	for (int i = 1; i <= 20; i++) {
		ADD(&a->at_barrier, 1);
		pthread_barrier_wait(&a->barrier);
		CHECK_EQ(LOAD(&a->at_barrier), 4 * i);
		pthread_barrier_wait(&a->barrier);
	}
	return arg;
}

/* Both sides run the same threads, one kind after the other. */
static void run_side(intptr_t side)
{
	pthread_t t[2];

	t[0] = start(counts, NULL);
	t[1] = start(counts, NULL);
	join(t[0]);
	join(t[1]);
	join(start(takes_turns, (void *)side));
	join(start(plays, (void *)side));
	t[0] = start(meets, NULL);
	t[1] = start(meets, NULL);
	join(t[0]);
	join(t[1]);
}

int main(void)
{
	pthread_mutexattr_t mutex_attr;
	pthread_condattr_t cond_attr;
	pthread_barrierattr_t barrier_attr;

	a = mmap(NULL, sizeof(*a), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_mutexattr_init(&mutex_attr);
	pthread_condattr_init(&cond_attr);
	pthread_barrierattr_init(&barrier_attr);
	CHECK_PT(pthread_mutexattr_setpshared(&mutex_attr, PTHREAD_PROCESS_SHARED));
	CHECK_PT(pthread_condattr_setpshared(&cond_attr, PTHREAD_PROCESS_SHARED));
	CHECK_PT(pthread_barrierattr_setpshared(&barrier_attr, PTHREAD_PROCESS_SHARED));
	CHECK_PT(pthread_mutex_init(&a->lock, &mutex_attr));
	CHECK_PT(pthread_cond_init(&a->cond, &cond_attr));
	CHECK_PT(pthread_barrier_init(&a->barrier, &barrier_attr, 4));
	CHECK_SYS(sem_init(&a->ping, 1, 1));
	CHECK_SYS(sem_init(&a->pong, 1, 0));

	pid_t child = fork();
	if (child == 0) {
		run_side(1);
		_exit(finish());
	}
	run_side(0);
	reap(child);
	CHECK_EQ(a->counter, 4 * ROUNDS);
	ok("mutex between processes");
	CHECK_EQ(a->turn, 2 * ROUNDS);
	ok("condition variable between processes");
	int value = 0;
	CHECK_SYS(sem_getvalue(&a->ping, &value));
	CHECK_EQ(value, 1);
	ok("semaphores between processes");
	CHECK_EQ(a->at_barrier, 80);
	ok("barrier between processes");
	return finish();
}
