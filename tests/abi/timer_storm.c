// SPDX-License-Identifier: Apache-2.0
/*
 * A timer that its handler sets anew, for a time that is over before the handler returns: nothing but the handler runs.
 * The handler of another signal runs all the same, whatever the first one was about to do when that came.
 */
#include "check.h"

#define ROUNDS 3

/*
 * Natively such a timer may keep the other handler from running for ever: both signals may come while the first handler
 * returns. So there it is slower than the handler.
 */
#define SLOWER 100000
#define FASTER 1000

static timer_t timer;
static int64_t period_ns;
static int turns, is_asked, is_over;
/* Before Linux 6.13 a timer's last signal may come after its end. */
static int is_running;

static void arm(int64_t ns)
{
	struct itimerspec spec = { timespec_of(ns), timespec_of(ns) };

	CHECK_SYS(timer_settime(timer, 0, &spec, NULL));
}

static void arms_again(int sig)
{
	(void)sig;
	if (!__atomic_load_n(&is_running, __ATOMIC_RELAXED))
		return;
	__atomic_fetch_add(&turns, 1, __ATOMIC_RELAXED);
	if (!__atomic_load_n(&is_asked, __ATOMIC_RELAXED)) {
		arm(period_ns);
		return;
	}
	arm(0);
	__atomic_store_n(&is_running, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&is_over, 1, __ATOMIC_RELAXED);
}

static void asks(int sig)
{
	(void)sig;
	__atomic_store_n(&is_asked, 1, __ATOMIC_RELAXED);
}

/* The thread that the timer interrupts is the other one: this one blocks its signal. */
static void *sends(void *arg)
{
	while (__atomic_load_n(&turns, __ATOMIC_RELAXED) < 5)
		sched_yield();
	CHECK_PT(pthread_kill(*(pthread_t *)arg, SIGUSR1));
	return arg;
}

static void storm(int sig)
{
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = sig };
	pthread_t self = pthread_self(), other;
	sigset_t set, old;

	turns = is_asked = is_over = 0;
	signal(sig, arms_again);
	signal(SIGUSR1, asks);
	sigemptyset(&set);
	sigaddset(&set, sig);
	pthread_sigmask(SIG_BLOCK, &set, &old);
	other = start(sends, &self);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	CHECK_SYS(timer_create(CLOCK_MONOTONIC, &event, &timer));
	__atomic_store_n(&is_running, 1, __ATOMIC_RELAXED);
	arm(period_ns);
	while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED))
		;
	join(other);
	CHECK_SYS(timer_delete(timer));
}

int main(void)
{
	period_ns = getenv("LD_PRELOAD") ? FASTER : SLOWER;
	for (int i = 0; i < ROUNDS; i++) {
		storm(SIGRTMIN);
		storm(SIGALRM);
	}
	ok("a timer faster than its handler");
	return finish();
}
