// SPDX-License-Identifier: Apache-2.0
/*
 * Programs that do not get on, and some that only look so. Usage: stuck WAY [FIFO]; prints "ready" first.
 *
 *   circle   two threads wait for each other's mutex, main for one of them
 *   handler  the same, but a handler of a signal could help
 *   sleeps   the same, but main only sleeps for half a second
 *   call     main opens FIFO while a thread computes
 *   busy     a thread computes for half a second beside main
 *   idle     main waits for a line; another thread waits for nothing that comes
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define HALF_NS 500000000

static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both;
static volatile int is_over;

__attribute__((noinline)) void waits_first(void)
{
	pthread_mutex_lock(&first);
	is_over = 1;
}

static void *one(void *arg)
{
	pthread_setname_np(pthread_self(), "one");
	pthread_mutex_lock(&first);
	pthread_barrier_wait(&both);
	pthread_mutex_lock(&second);
	return arg;
}

static void *two(void *arg)
{
	pthread_setname_np(pthread_self(), "two\033");
	pthread_mutex_lock(&second);
	pthread_barrier_wait(&both);
	waits_first();
	return arg;
}

static void *spins(void *arg)
{
	while (!is_over)
		;
	return arg;
}

static void on_signal(int sig)
{
	(void)sig;
}

static void say_ready(void)
{
	printf("ready\n");
	fflush(stdout);
}

static void compute(void)
{
	struct timespec from, now;

	clock_gettime(CLOCK_MONOTONIC, &from);
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while ((now.tv_sec - from.tv_sec) * 1000000000L + now.tv_nsec - from.tv_nsec < HALF_NS);
}

int main(int argc, char **argv)
{
	const struct timespec half = { .tv_nsec = HALF_NS };
	const char *way = argc > 1 ? argv[1] : "";
	int is_circle = !strcmp(way, "circle") || !strcmp(way, "handler") || !strcmp(way, "sleeps");
	pthread_t a, b;

	pthread_barrier_init(&both, NULL, 2);
	if (!strcmp(way, "handler"))
		signal(SIGUSR1, on_signal);
	if (pthread_create(&a, NULL, is_circle || !strcmp(way, "idle") ? one : spins, NULL) ||
	    (is_circle && pthread_create(&b, NULL, two, NULL)))
		return 1;
	say_ready();
	if (!strcmp(way, "call"))
		(void)open(argv[2], O_RDONLY);
	else if (!strcmp(way, "busy"))
		compute();
	else if (!strcmp(way, "sleeps"))
		nanosleep(&half, NULL);
	else if (!strcmp(way, "idle"))
		(void)getchar();
	else
		pthread_join(a, NULL);
	_exit(0);
}
