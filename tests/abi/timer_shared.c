// SPDX-License-Identifier: Apache-2.0
/*
 * Two threads set one timer at the same time: when it has been deleted, nothing of it comes any more.
 */
#include "check.h"

#define ROUNDS 500

static timer_t timer; /* NULL is the number of a timer, too */
static int is_there, is_over;

static void arm(int64_t ns)
{
	struct itimerspec spec = { .it_value = timespec_of(ns) };

	(void)timer_settime(timer, 0, &spec, NULL); /* may be gone */
}

static void *disturbs(void *arg)
{
	while (!LOAD(&is_over)) {
		if (LOAD(&is_there))
			arm(1000 * SEC);
		else
			sched_yield();
	}
	return arg;
}

static void check(clockid_t clock)
{
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMIN };
	struct timespec now = { 0, 0 };
	sigset_t set;
	int nr_late = 0;

	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	event._sigev_un._tid = gettid();
	for (int i = 0; i < ROUNDS; i++) {
		CHECK_SYS(timer_create(clock, &event, &timer));
		STORE(&is_there, 1);
		for (int j = 0; j < i % 8; j++) {
			arm(1);
			for (volatile int k = i * 7 % 13 * 100; k > 0; k--)
				;
		}
		CHECK_SYS(timer_delete(timer));
		STORE(&is_there, 0);
		for (int j = 0; j < 3; j++) {
			nr_late += sigtimedwait(&set, NULL, &now) > 0;
			sched_yield();
		}
	}
	CHECK(nr_late == 0 || !kernel_drops_timer_signals());
}

static void *run(void *arg)
{
	check(CLOCK_MONOTONIC);
	ok("on the wall clock");
	check(CLOCK_THREAD_CPUTIME_ID);
	ok("on the clock of a thread");
	return arg;
}

int main(void)
{
	pthread_t other;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	other = start(disturbs, NULL);
	join(start(run, NULL));
	STORE(&is_over, 1);
	join(other);
	return finish();
}
