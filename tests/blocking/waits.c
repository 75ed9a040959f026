// SPDX-License-Identifier: Apache-2.0
/*
 * One thread for every call that can wait for ever, named after the call, each in its wait.
 *
 * Run by: test_waits.py, which asks `weft dump` which of the threads are parked and which hold a kernel
 * thread. Says "ready" when every thread has been started; ends when its standard input does.
 */
#include "waits.h"

static bool is_over; /* what is waited for goes away with clean_up() */

static void ends_here(void)
{
	while (__atomic_load_n(&is_over, __ATOMIC_ACQUIRE))
		pause();
}

static void fails(const char *what)
{
	ends_here();
	perror(what);
	exit(2);
}

static void *waits(void *arg)
{
	size_t i = (size_t)arg;

	pthread_setname_np(pthread_self(), calls[i].name);
	calls[i].fn();
	ends_here();
	fprintf(stderr, "%s came back\n", calls[i].name);
	exit(3);
}

int main(int argc, char **argv)
{
	pthread_t t;

	prepare();
	for (size_t i = 0; i < NR_CALLS; i++)
		if (argc < 2 || !strcmp(argv[1], calls[i].name))
			MUST(-pthread_create(&t, NULL, waits, (void *)i));
	printf("ready\n");
	fflush(stdout);
	while (read(0, block, 1) > 0)
		;
	__atomic_store_n(&is_over, true, __ATOMIC_RELEASE);
	clean_up();
	_exit(0); /* threads wait everywhere: nothing to tidy up behind them */
}
