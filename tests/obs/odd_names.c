// SPDX-License-Identifier: Apache-2.0
/*
 * The victim of the tests of pages: threads whose names are no plain words, a mutex that two of them wait for, and one that
 * wakes a thousand times a second.
 *
 * Usage: odd_names [THREADS]: so many more that wait. Prints "ready", then does what each line on standard input says: end, or exec (itself, with the same in it).
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t all_named;
static sem_t never;

static void *waits(void *name)
{
	pthread_setname_np(pthread_self(), name);
	if (strcmp(name, "owner") == 0)
		pthread_mutex_lock(&held);
	pthread_barrier_wait(&all_named);
	if (strcmp(name, "ticks") == 0) {
		for (;;)
			usleep(1000);
	}
	if (strncmp(name, "\033", 1) == 0 || strncmp(name, "\346", 1) == 0)
		pthread_mutex_lock(&held);
	while (sem_wait(&never) < 0)
		;
	return NULL;
}

static void *crowd(void *arg)
{
	while (sem_wait(&never) < 0)
		;
	return arg;
}

static int make_crowd(long nr)
{
	pthread_attr_t small;
	pthread_t t;

	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 64 << 10);
	for (long i = 0; i < nr; i++) {
		if (pthread_create(&t, &small, crowd, NULL))
			return 1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	static char names[][16] = { "owner",
				    "\033[2J\033[31mred",
				    "\346\227\245\346\234\254\350\252\236",
				    "e\314\201\314\201-acute",
				    "\23331m-c1",
				    "ticks" };
	const size_t nr = sizeof(names) / sizeof(names[0]);
	char line[16];
	pthread_t t;

	pthread_barrier_init(&all_named, NULL, (unsigned)nr + 1);
	sem_init(&never, 0, 0);
	for (size_t i = 0; i < nr; i++) {
		if (pthread_create(&t, NULL, waits, names[i]))
			return 1;
	}
	pthread_barrier_wait(&all_named);
	if (argc > 1 && make_crowd(atol(argv[1])))
		return 1;
	printf("ready\n");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		if (strcmp(line, "exec\n") == 0)
			execl("/proc/self/exe", "executed", (char *)NULL);
		if (strcmp(line, "end\n") == 0)
			_exit(0);
	}
	return 0;
}
