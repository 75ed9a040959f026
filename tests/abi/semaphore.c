// SPDX-License-Identifier: Apache-2.0
/*
 * Unnamed semaphores: counting, ping-pong, trywait, timed waits on both clocks.
 */
#include <semaphore.h>
#include "check.h"

#define ROUNDS 20000
#define NR 16

static sem_t ping, pong, slots;
static int nr_inside, most_inside;

static void *answers(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		CHECK_SYS(sem_wait(&ping));
		CHECK_SYS(sem_post(&pong));
	}
	return arg;
}

static void *uses_a_slot(void *arg)
{
	for (int i = 0; i < 500; i++) {
		CHECK_SYS(sem_wait(&slots));
		int nr = ADD(&nr_inside, 1);

		CHECK(nr <= 3);
		if (nr > LOAD(&most_inside))
			STORE(&most_inside, nr);
		sched_yield();
		ADD(&nr_inside, -1);
		CHECK_SYS(sem_post(&slots));
	}
	return arg;
}

int main(void)
{
	pthread_t t[NR];
	int value;

	sem_init(&ping, 0, 0);
	sem_init(&pong, 0, 0);
	sem_init(&slots, 0, 3);
	t[0] = start(answers, NULL);
	for (int i = 0; i < ROUNDS; i++) {
		CHECK_SYS(sem_post(&ping));
		CHECK_SYS(sem_wait(&pong));
	}
	join(t[0]);
	ok("20000 round trips");

	for (int i = 0; i < NR; i++)
		t[i] = start(uses_a_slot, NULL);
	for (int i = 0; i < NR; i++)
		join(t[i]);
	CHECK_SYS(sem_getvalue(&slots, &value));
	CHECK_EQ(value, 3);
	CHECK(most_inside >= 1);
	ok("never more than three inside");

	CHECK_ERRNO(sem_trywait(&ping), EAGAIN);
	for (int i = 0; i < 4; i++) {
		int64_t deadline = clock_ns(CLOCK_REALTIME) + i * 4 * MS;
		struct timespec ts = timespec_of(deadline);

		CHECK_ERRNO(sem_timedwait(&ping, &ts), ETIMEDOUT);
		CHECK(clock_ns(CLOCK_REALTIME) >= deadline);
		deadline = now_ns() + i * 4 * MS;
		ts = timespec_of(deadline);
		CHECK_ERRNO(sem_clockwait(&ping, CLOCK_MONOTONIC, &ts), ETIMEDOUT);
		CHECK(now_ns() >= deadline);
	}
	struct timespec bad = { .tv_nsec = SEC };
	CHECK_ERRNO(sem_timedwait(&ping, &bad), EINVAL);
	struct timespec past = { .tv_sec = 1 };
	CHECK_SYS(sem_post(&ping));
	CHECK_SYS(sem_timedwait(&ping, &past));
	ok("timed waits: not early, EINVAL for a bad time, a past one may still succeed");
	return finish();
}
