// SPDX-License-Identifier: Apache-2.0
/*
 * A signal that comes at the instant in which something else starts or goes on is seen without any further
 * call: by a handler that waits for the next signal's handler, and by a thread that goes on after it was
 * preempted.
 */
#include <sched.h>
#include "check.h"

#define ROUNDS 20
#define NR_SPINNERS 4
#define SPINNER_ROUNDS 8

static int nr_first, nr_second, nr_ready, is_over;
static int nr_seen[NR_SPINNERS];
static __thread int *seen;

static void second(int sig)
{
	(void)sig;
	ADD(&nr_second, 1);
}

/* No call in here: only the second handler, on top of this one, ends it. */
static void first(int sig)
{
	int round = ADD(&nr_first, 1);

	(void)sig;
	while (LOAD(&nr_second) < round)
		;
}

static void *makes_calls(void *arg)
{
	while (!LOAD(&is_over))
		(void)getppid();
	return arg;
}

static void *computes(void *arg)
{
	while (!LOAD(&is_over))
		;
	return arg;
}

/* From no delay at all to one of some microseconds, in steps of a nanosecond or so. */
static void delay(int steps)
{
	for (volatile int i = 0; i < steps; i++)
		;
}

static void nest(void *(*victim)(void *), const char *what)
{
	pthread_t t;

	STORE(&nr_first, 0);
	STORE(&nr_second, 0);
	STORE(&is_over, 0);
	t = start(victim, NULL);
	for (int i = 1; i <= ROUNDS; i++) {
		CHECK_PT(pthread_kill(t, SIGUSR1));
		delay(i * 100);
		CHECK_PT(pthread_kill(t, SIGUSR2));
		while (LOAD(&nr_second) < i || LOAD(&nr_first) < i)
			sched_yield();
	}
	STORE(&is_over, 1);
	join(t);
	ok(what);
}

static void sees(int sig)
{
	(void)sig;
	ADD(seen, 1);
}

static void *spins(void *arg)
{
	seen = &nr_seen[(intptr_t)arg];
	ADD(&nr_ready, 1);
	while (!LOAD(&is_over))
		;
	return arg;
}

/* More of them than processors, so that they are preempted. */
static void preempted(void)
{
	pthread_t t[NR_SPINNERS];

	STORE(&is_over, 0);
	for (intptr_t i = 0; i < NR_SPINNERS; i++)
		t[i] = start(spins, (void *)i);
	while (LOAD(&nr_ready) < NR_SPINNERS)
		sched_yield();
	for (int i = 0; i < SPINNER_ROUNDS; i++) {
		int who = i % NR_SPINNERS, before = LOAD(&nr_seen[who]);

		CHECK_PT(pthread_kill(t[who], SIGHUP));
		while (LOAD(&nr_seen[who]) == before)
			sched_yield();
	}
	STORE(&is_over, 1);
	for (int i = 0; i < NR_SPINNERS; i++)
		join(t[i]);
	ok("threads that are preempted see every signal");
}

int main(void)
{
	struct sigaction act = { .sa_handler = first };

	sigaction(SIGUSR1, &act, NULL);
	act.sa_handler = second;
	sigaction(SIGUSR2, &act, NULL);
	act.sa_handler = sees;
	sigaction(SIGHUP, &act, NULL);
	nest(makes_calls, "a handler that interrupted a call sees the next signal");
	nest(computes, "a handler that interrupted code sees the next signal");
	preempted();
	return finish();
}
