// SPDX-License-Identifier: Apache-2.0
/*
 * exit() and _exit() from a thread end the process with that status, whatever the others do.
 */
#include "check.h"

static int go;

static void at_exit(void)
{
	ok("atexit handler");
}

static void *waits_for_ever(void *arg)
{
	pause();
	return arg;
}

static void *spins(void *arg)
{
	for (;;)
		ADD((long *)arg, 1);
	return NULL;
}

static void *leaves(void *arg)
{
	while (!LOAD(&go))
		sched_yield();
	if ((intptr_t)arg < 0)
		_exit(-(int)(intptr_t)arg);
	exit((int)(intptr_t)arg);
}

static void *ends(void *arg)
{
	return arg;
}

/* By the bare call, which ends one thread. */
static void *ends_bare(void *arg)
{
	syscall(SYS_exit, 6);
	return arg;
}

int main(int argc, char **argv)
{
	static long counter;

	if (argc == 2 && !strcmp(argv[1], "last")) {
		for (int i = 0; i < 10; i++)
			pthread_detach(start(ends, NULL));
		pthread_exit(NULL);
	}
	if (argc == 2 && !strcmp(argv[1], "bare")) {
		for (int i = 0; i < 5; i++)
			start(ends_bare, NULL);
		ends_bare(NULL);
	}
	if (argc == 2) {
		intptr_t status = atoi(argv[1]);

		for (int i = 0; i < 10; i++)
			start(waits_for_ever, NULL);
		start(leaves, (void *)status);
		STORE(&go, 1);
		for (;;)
			pause();
	}
	CHECK_EQ(run_self("7"), 7 << 8);
	ok("exit(7) from a thread");
	CHECK_EQ(run_self("-9"), 9 << 8);
	ok("_exit(9) from a thread");
	CHECK_EQ(run_self("last"), 0);
	ok("all threads end: status 0");
	CHECK_EQ(run_self("bare"), 6 << 8);
	ok("all threads end by the bare call");
	if (finish())
		return 1;

	atexit(at_exit);
	start(waits_for_ever, NULL);
	start(spins, &counter);
	start(leaves, (void *)0);
	STORE(&go, 1);
	pthread_join(pthread_self(), NULL);
	for (;;)
		pause();
}
