// SPDX-License-Identifier: Apache-2.0
/* Signals for a thread that only computes, also two at the same instant: each is handled at once. */
#include "check.h"

#define ROUNDS 200

static int nr_a, nr_b, is_over;

static void handler(int sig)
{
	ADD(sig == SIGUSR1 ? &nr_a : &nr_b, 1);
}

static void *spins(void *arg)
{
	while (!LOAD(&is_over))
		;
	return arg;
}

static pthread_t spinner;

static void *sends(void *arg)
{
	int sig = *(int *)arg, *nr = sig == SIGUSR1 ? &nr_a : &nr_b;

	for (int i = 0; i < ROUNDS; i++) {
		pthread_kill(spinner, sig);
		while (LOAD(nr) <= i)
			sched_yield();
	}
	return NULL;
}

int main(void)
{
	struct sigaction act = { .sa_handler = handler };
	int a = SIGUSR1, b = SIGUSR2;
	pthread_t t[2];

	sigaction(SIGUSR1, &act, NULL);
	sigaction(SIGUSR2, &act, NULL);
	spinner = start(spins, NULL);
	t[0] = start(sends, &a);
	t[1] = start(sends, &b);
	join(t[0]);
	join(t[1]);
	STORE(&is_over, 1);
	join(spinner);
	CHECK_EQ(nr_a, ROUNDS);
	CHECK_EQ(nr_b, ROUNDS);
	ok("each of two senders waits for its own");
	return finish();
}
