// SPDX-License-Identifier: Apache-2.0
/*
 * A timer with a period of a microsecond: faster than its signals can be taken. Its handler may set it anew and
 * stop it; a blocked signal of it can be unblocked. One that is set for a time that is over sends at once, and
 * that signal counts all that was missed.
 */
#include "check.h"

#define TURNS 50

static timer_t timer;
static int turns;

static void arm(int64_t ns)
{
	struct itimerspec spec = { timespec_of(ns), timespec_of(ns) };

	CHECK_SYS(timer_settime(timer, 0, &spec, NULL));
}

static void arms_again(int sig)
{
	(void)sig;
	if (++turns <= TURNS)
		arm(turns < TURNS ? 1000 : 0);
}

static void make(clockid_t clock, int sig)
{
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = sig };

	turns = 0;
	CHECK_SYS(timer_create(clock, &event, &timer));
}

static void check_turns(void)
{
	if (kernel_drops_timer_signals())
		CHECK_EQ(turns, TURNS);
	else
		CHECK(turns >= TURNS);
}

/* A signal that an older kernel leaves queued would be taken for the next round's. */
static void drop_stale(const sigset_t *set)
{
	while (sigtimedwait(set, NULL, &(struct timespec){ 0 }) > 0)
		;
}

static void set_from_its_handler(int sig)
{
	sigset_t set, old;

	sigemptyset(&set);
	sigaddset(&set, sig);
	signal(sig, arms_again);
	make(CLOCK_MONOTONIC, sig);
	pthread_sigmask(SIG_BLOCK, &set, &old);
	arm(1000);
	while (turns < TURNS)
		sigsuspend(&old);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	check_turns();
	CHECK_SYS(timer_delete(timer));
	check_turns();
}

static void unblocked_now_and_then(int sig)
{
	sigset_t set, old;

	sigemptyset(&set);
	sigaddset(&set, sig);
	signal(sig, arms_again);
	make(CLOCK_REALTIME, sig);
	arm(1000);
	while (__atomic_load_n(&turns, __ATOMIC_RELAXED) < TURNS) {
		pthread_sigmask(SIG_BLOCK, &set, &old);
		pthread_sigmask(SIG_SETMASK, &old, NULL);
	}
	check_turns();
	CHECK_SYS(timer_delete(timer));
}

static int overrun;

static void looks_and_stops(int sig)
{
	(void)sig;
	if (turns++ == 0) {
		overrun = timer_getoverrun(timer);
		arm(0);
	}
}

static void set_for_the_past(int sig)
{
	struct itimerspec spec = { .it_interval = { 0, 1 } };
	sigset_t set, old;

	sigemptyset(&set);
	sigaddset(&set, sig);
	signal(sig, looks_and_stops);
	make(CLOCK_MONOTONIC, sig);
	pthread_sigmask(SIG_BLOCK, &set, &old);
	for (int i = 0; i < 20; i++) {
		turns = 0;
		clock_gettime(CLOCK_MONOTONIC, &spec.it_value);
		spec.it_value.tv_sec -= 5;
		CHECK_SYS(timer_settime(timer, TIMER_ABSTIME, &spec, NULL));
		while (turns == 0)
			sigsuspend(&old);
		CHECK_EQ(overrun, INT32_MAX);
		drop_stale(&set);
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	CHECK_SYS(timer_delete(timer));
}

static void *body(void *arg)
{
	set_for_the_past(SIGRTMIN);
	set_for_the_past(SIGUSR1);
	set_from_its_handler(SIGRTMIN);
	set_from_its_handler(SIGUSR1);
	unblocked_now_and_then(SIGRTMIN);
	unblocked_now_and_then(SIGUSR1);
	return arg;
}

static void *nothing(void *arg)
{
	return arg;
}

int main(void)
{
	join(start(nothing, NULL));
	body(NULL);
	ok("set for the past, set from its handler, and unblocked");
	return finish();
}
