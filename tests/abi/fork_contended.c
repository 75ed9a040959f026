// SPDX-License-Identifier: Apache-2.0
/*
 * fork in a program whose threads contend for a lock: the child's threads contend for it as well, and all of them end.
 */
#include "check.h"

#define NR_THREADS 4
#define ROUNDS 3000
#define NR_FORKS 8

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int nr_holds, is_over;

static void *contends(void *arg)
{
	for (int i = 0; i < ROUNDS || (arg && !LOAD(&is_over)); i++) {
		pthread_mutex_lock(&lock);
		ADD(&nr_holds, 1);
		if (i % 16 == 0)
			sched_yield();
		pthread_mutex_unlock(&lock);
		if (i % 16 == 8)
			sched_yield(); /* else main never has it on one worker */
	}
	return arg;
}

static void contend(void)
{
	pthread_t t[NR_THREADS];

	for (int i = 0; i < NR_THREADS; i++)
		t[i] = start(contends, NULL);
	for (int i = 0; i < NR_THREADS; i++)
		join(t[i]);
}

int main(void)
{
	pthread_t t[NR_THREADS];

	for (int i = 0; i < NR_THREADS; i++)
		t[i] = start(contends, &is_over);
	while (LOAD(&nr_holds) < ROUNDS)
		sched_yield();
	for (int i = 0; i < NR_FORKS; i++) {
		pid_t pid;

		pthread_mutex_lock(&lock); /* a child has it as it is */
		pid = fork();
		pthread_mutex_unlock(&lock);
		if (pid == 0) {
			contend();
			_exit(finish());
		}
		reap(pid);
	}
	STORE(&is_over, 1);
	for (int i = 0; i < NR_THREADS; i++)
		join(t[i]);
	ok("children of a program that contends");
	return finish();
}
