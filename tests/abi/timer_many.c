// SPDX-License-Identifier: Apache-2.0
/*
 * Thousands of timers for one thread, hundreds on the CPU clock of a thread: each says its own once. A timer that is
 * deleted while it runs says nothing, one that was set again or ended before says nothing more.
 */
#include "check.h"

#include <time.h>

#define NR 3000
#define NR_CPU 300

static timer_t timers[NR];
static unsigned char said[NR];

static timer_t make(clockid_t clock, int value)
{
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMIN };
	timer_t timer = NULL;

	event.sigev_value.sival_int = value;
	event._sigev_un._tid = gettid();
	CHECK_SYS(timer_create(clock, &event, &timer));
	return timer;
}

static void arm(timer_t timer, int64_t ns)
{
	struct itimerspec spec = { .it_value = timespec_of(ns) };

	CHECK_SYS(timer_settime(timer, 0, &spec, NULL));
}

/* Signals that are blocked come to whoever waits for them: each timer's once. */
static int take(int nr, int64_t limit_ns)
{
	struct timespec limit = timespec_of(limit_ns);
	siginfo_t info;
	sigset_t set;
	int nr_taken = 0;

	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	while (nr_taken < nr && sigtimedwait(&set, &info, &limit) == SIGRTMIN) {
		CHECK_EQ(info.si_code, SI_TIMER);
		said[info.si_value.sival_int]++;
		nr_taken++;
	}
	return nr_taken;
}

static void all_come(void)
{
	for (int i = 0; i < NR; i++)
		timers[i] = make(CLOCK_MONOTONIC, i);
	for (int i = 0; i < NR; i++)
		arm(timers[i], 1 + i * 1000);
	CHECK_EQ(take(NR, 60 * SEC), NR);
	for (int i = 0; i < NR; i++)
		CHECK_EQ(said[i], 1);
	ok("each says its own");
}

/* Every other one is stopped, deleted or set anew while it runs; the rest is left alone. */
static void some_are_stopped(void)
{
	for (int i = 0; i < NR; i++)
		arm(timers[i], 1000 * SEC);
	for (int i = 0; i < NR; i += 4)
		arm(timers[i], 0);
	for (int i = 1; i < NR; i += 4)
		CHECK_SYS(timer_delete(timers[i]));
	for (int i = 2; i < NR; i += 4) {
		if (kernel_drops_timer_signals())
			arm(timers[i], 1); /* may be over by now, and set again */
		arm(timers[i], 1000 * SEC);
	}
	CHECK_EQ(take(1, 1), 0);
	for (int i = 3; i < NR; i += 4)
		arm(timers[i], 1);
	CHECK_EQ(take(NR / 4, 60 * SEC), NR / 4);
	for (int i = 0; i < NR; i++)
		CHECK_EQ(said[i], i % 4 == 3 ? 2 : 1);
	for (int i = 0; i < NR; i++) {
		if (i % 4 != 1)
			CHECK_SYS(timer_delete(timers[i]));
		CHECK_ERRNO(timer_delete(timers[i]), EINVAL);
	}
	ok("stopped, deleted, set anew");
}

static void on_cpu_clock(void)
{
	int nr = 0;

	memset(said, 0, sizeof(said));
	for (int i = 0; i < NR_CPU; i++)
		timers[i] = make(CLOCK_THREAD_CPUTIME_ID, i);
	for (int i = 0; i < NR_CPU; i++)
		arm(timers[i], 1 + i * 10000);
	while (nr < NR_CPU)
		nr += take(NR_CPU, 1); /* uses time of its own */
	for (int i = 0; i < NR_CPU; i++) {
		CHECK_EQ(said[i], 1);
		arm(timers[i], 1000 * SEC);
		CHECK_SYS(timer_delete(timers[i]));
	}
	CHECK_EQ(take(1, 1), 0);
	ok("on the clock of a thread");
}

static void *run(void *arg)
{
	all_come();
	some_are_stopped();
	on_cpu_clock();
	return arg;
}

int main(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	join(start(run, NULL));
	return finish();
}
