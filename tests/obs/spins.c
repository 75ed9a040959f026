// SPDX-License-Identifier: Apache-2.0
/*
 * Two threads that wait in loops, for as much of the processor as half a second.
 *
 * Run by: test_spins.py. With an argument the loops say that they wait, as those of libraries do.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

static bool is_over;

static void *waits(void *arg)
{
	while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED))
		;
	return arg;
}

/* Far from the other one. */
static void *waits_and_says_so(void *arg)
{
	__asm__ volatile(".balign 64");
	while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED))
		__builtin_ia32_pause();
	return arg;
}

int main(int argc, char **argv)
{
	struct timespec half = { .tv_nsec = 500000000 };
	pthread_t t[2];

	(void)argv;
	for (int i = 0; i < 2; i++)
		if (pthread_create(&t[i], NULL, argc > 1 ? waits_and_says_so : waits, NULL))
			return 2;
	if (clock_nanosleep(CLOCK_PROCESS_CPUTIME_ID, 0, &half, NULL))
		return 3;
	__atomic_store_n(&is_over, true, __ATOMIC_RELAXED);
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	return 0;
}
