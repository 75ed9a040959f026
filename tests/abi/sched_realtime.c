// SPDX-License-Identifier: Apache-2.0
/*
 * Real-time policies and processors, where a program can see that they are kept: a thread of higher priority runs
 * first on the same processor, locks go to the highest priority, and a thread is where its affinity says.
 */
#include <linux/futex.h>
#include <sched.h>
#include "check.h"

#define NR 3

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, order_lock = PTHREAD_MUTEX_INITIALIZER;
static int is_done, nr_waiting, order[NR], nr_ordered, stop, cpu;

static int create(pthread_t *t, int policy, int priority, void *(*fn)(void *), void *arg)
{
	struct sched_param param = { .sched_priority = priority };
	pthread_attr_t attr;
	int ret;

	pthread_attr_init(&attr);
	pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(&attr, policy);
	pthread_attr_setschedparam(&attr, &param);
	ret = pthread_create(t, &attr, fn, arg);
	pthread_attr_destroy(&attr);
	return ret;
}

static void *is_higher(void *arg)
{
	int64_t end = now_ns() + 20 * MS;

	while (now_ns() < end)
		sched_yield();
	STORE(&is_done, 1);
	return arg;
}

static void *is_lower(void *arg)
{
	struct sched_param param;
	pthread_t t;
	int policy;

	CHECK_PT(pthread_getschedparam(pthread_self(), &policy, &param));
	CHECK_EQ(policy, SCHED_FIFO);
	CHECK_EQ(param.sched_priority, 10);
	CHECK_PT(create(&t, SCHED_FIFO, 11, is_higher, NULL));
	CHECK(LOAD(&is_done)); /* it had the processor until it was done */
	join(t);
	/* lowered and raised again, by itself and by the parameters alone */
	param.sched_priority = 0;
	CHECK_PT(pthread_setschedparam(pthread_self(), SCHED_OTHER, &param));
	param.sched_priority = 12;
	CHECK_PT(pthread_setschedparam(pthread_self(), SCHED_RR, &param));
	CHECK_PT(pthread_setschedprio(pthread_self(), 10));
	CHECK_EQ(sched_getscheduler(0), SCHED_RR);
	return arg;
}

static void *takes_lock(void *arg)
{
	ADD(&nr_waiting, 1);
	pthread_mutex_lock(&lock);
	pthread_mutex_lock(&order_lock);
	order[nr_ordered++] = (int)(intptr_t)arg;
	pthread_mutex_unlock(&order_lock);
	pthread_mutex_unlock(&lock);
	return NULL;
}

static int word;

static void *waits_at_word(void *arg)
{
	while (!LOAD(&word))
		syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
	order[LOAD(&nr_ordered)] = (int)(intptr_t)arg;
	ADD(&nr_ordered, 1);
	return NULL;
}

static long nr_at_word(void)
{
	/* To the same word nobody is moved, but counted. */
	return CHECK_SYS(syscall(SYS_futex, &word, FUTEX_REQUEUE_PRIVATE, 0, NR, &word, 0));
}

/* The highest first; among equals who came first. */
static void wake_in_order(const int *priorities, const int *want)
{
	pthread_t t[NR];

	STORE(&nr_ordered, 0);
	STORE(&word, 0);
	for (int i = 0; i < NR; i++) {
		CHECK_PT(create(&t[i], SCHED_FIFO, priorities[i], waits_at_word,
				(void *)(intptr_t)i));
		while (nr_at_word() < i + 1)
			sched_yield();
	}
	STORE(&word, 1);
	for (int i = 0; i < NR; i++) {
		CHECK_EQ(syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0), 1);
		while (LOAD(&nr_ordered) < i + 1)
			sched_yield();
		CHECK_EQ(order[i], want[i]);
	}
	for (int i = 0; i < NR; i++)
		join(t[i]);
	nr_ordered = 0;
}

static void *spins(void *arg)
{
	while (!LOAD(&stop))
		STORE(&cpu, sched_getcpu());
	return arg;
}

static void *gives_self_away(void *arg)
{
	const struct sched_param param = { .sched_priority = 5 };

	CHECK_PT(pthread_setschedparam(pthread_self(), SCHED_FIFO | SCHED_RESET_ON_FORK, &param));
	CHECK_EQ(sched_getscheduler(0), SCHED_FIFO | SCHED_RESET_ON_FORK);
	return arg;
}

static void follows_affinity(void)
{
	cpu_set_t all, one;
	pthread_t t;

	CHECK_SYS(sched_getaffinity(0, sizeof(all), &all));
	t = start(spins, NULL);
	for (int i = 0; i < CPU_SETSIZE && i < 4; i++) {
		if (!CPU_ISSET(i, &all))
			continue;
		CPU_ZERO(&one);
		CPU_SET(i, &one);
		CHECK_PT(pthread_setaffinity_np(t, sizeof(one), &one));
		STORE(&cpu, -1);
		while (LOAD(&cpu) < 0)
			sched_yield();
		/* what it stored had perhaps been read before it moved: the next one was not */
		STORE(&cpu, -1);
		while (LOAD(&cpu) < 0)
			sched_yield();
		CHECK_EQ(LOAD(&cpu), i);
	}
	CHECK_PT(pthread_setaffinity_np(t, sizeof(all), &all));
	STORE(&stop, 1);
	join(t);
}

int main(void)
{
	const int priorities[NR] = { 5, 20, 10 };
	struct sched_param param = { .sched_priority = 1 };
	cpu_set_t all, one;
	pthread_t t[NR];
	int first = 0;

	if (sched_setscheduler(0, SCHED_FIFO, &param) < 0) {
		fprintf(stderr, "no real-time policies here\n");
		return EXIT_SKIP;
	}
	param.sched_priority = 0;
	CHECK_SYS(sched_setscheduler(0, SCHED_OTHER, &param));
	CHECK_SYS(sched_getaffinity(0, sizeof(all), &all));
	while (!CPU_ISSET(first, &all))
		first++;

	follows_affinity();
	ok("a spinning thread goes where it is sent");

	/* main alone on one processor, with the threads that it makes */
	CPU_ZERO(&one);
	CPU_SET(first, &one);
	CHECK_SYS(sched_setaffinity(0, sizeof(one), &one));
	CHECK_EQ(sched_getcpu(), first);
	CHECK_PT(create(&t[0], SCHED_FIFO, 10, is_lower, NULL));
	join(t[0]);
	ok("the higher priority first");

	pthread_mutex_lock(&lock);
	for (int i = 0; i < NR; i++)
		CHECK_PT(create(&t[i], SCHED_FIFO, priorities[i], takes_lock,
				(void *)(intptr_t)priorities[i]));
	while (LOAD(&nr_waiting) < NR)
		sched_yield();
	let_others_block();
	pthread_mutex_unlock(&lock);
	for (int i = 0; i < NR; i++)
		join(t[i]);
	CHECK_EQ(order[0], 20);
	CHECK_EQ(order[1], 10);
	CHECK_EQ(order[2], 5);
	ok("a lock goes to the highest");

	wake_in_order((const int[NR]){ 7, 7, 7 }, (const int[NR]){ 0, 1, 2 });
	wake_in_order((const int[NR]){ 5, 9, 9 }, (const int[NR]){ 1, 2, 0 });
	wake_in_order((const int[NR]){ 5, 9, 5 }, (const int[NR]){ 1, 0, 2 });
	ok("waiters by priority, and equals as they came");

	join(start(gives_self_away, NULL));
	CHECK_EQ(sched_getscheduler(0), SCHED_OTHER);
	CHECK_SYS(sched_setaffinity(0, sizeof(all), &all));
	ok("by the thread itself");
	return finish();
}
