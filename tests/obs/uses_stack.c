// SPDX-License-Identifier: Apache-2.0
/*
 * Threads that have used little of their stacks, and some that have used much; all wait.
 *
 * Usage: uses_stack [NR]. Run by: test_stack_use.py. Prints "ready"; ends with standard input.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NR_DEEP 3
#define DEEP_BYTES (300 << 10)

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER, all_there = PTHREAD_COND_INITIALIZER;
static long nr_there;

__attribute__((noinline)) static void use(void)
{
	volatile char room[DEEP_BYTES];

	for (size_t i = 0; i < sizeof(room); i += 512)
		room[i] = 1;
}

static void wait_for_ever(void)
{
	pthread_mutex_lock(&mutex);
	nr_there++;
	pthread_cond_signal(&all_there);
	for (;;)
		pthread_cond_wait(&cond, &mutex);
}

static void *is_shallow(void *arg)
{
	wait_for_ever();
	return arg;
}

static void *is_deep(void *arg)
{
	use();
	wait_for_ever();
	return arg;
}

int main(int argc, char **argv)
{
	const long nr = argc > 1 ? atol(argv[1]) : 5;
	pthread_attr_t attr;
	pthread_t t;

	pthread_attr_init(&attr);
	for (long i = 0; i < nr + NR_DEEP; i++) {
		pthread_attr_setstacksize(&attr, i < nr ? 64 << 10 : 1 << 20);
		if (pthread_create(&t, &attr, i < nr ? is_shallow : is_deep, NULL))
			return 2;
	}
	pthread_mutex_lock(&mutex);
	while (nr_there < nr + NR_DEEP)
		pthread_cond_wait(&all_there, &mutex);
	pthread_mutex_unlock(&mutex);
	puts("ready");
	fflush(stdout);
	while (getchar() != EOF)
		;
	exit(0);
}
