// SPDX-License-Identifier: Apache-2.0
/*
 * A periodic timer whose signal is blocked sends one signal that counts the others, to the process and to one
 * thread; after the timer is gone none of it comes.
 */
#include "check.h"

#define gettid_() ((pid_t)syscall(SYS_gettid))
#define PERIODS 30

static int64_t interval = MS;

static timer_t make(int sig, int for_thread)
{
	struct sigevent event = { .sigev_signo = sig };
	timer_t timer;

	event.sigev_notify = for_thread ? SIGEV_THREAD_ID : SIGEV_SIGNAL;
	event.sigev_value.sival_int = 42;
	event._sigev_un._tid = gettid_();
	CHECK_SYS(timer_create(CLOCK_MONOTONIC, &event, &timer));
	return timer;
}

static void arm(timer_t timer, int64_t ns)
{
	struct itimerspec spec = { timespec_of(ns), timespec_of(ns) };

	CHECK_SYS(timer_settime(timer, 0, &spec, NULL));
}

/* Older kernels leave a signal that is pending. */
static int takes_nothing(const sigset_t *set)
{
	struct timespec now = { 0, 0 };

	return sigtimedwait(set, NULL, &now) < 0 || !kernel_drops_timer_signals();
}

static void check_overrun(int sig, int for_thread)
{
	struct timespec now = { 0, 0 };
	timer_t timer;
	siginfo_t info;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, sig);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	timer = make(sig, for_thread);
	arm(timer, interval);
	sleep_ns(PERIODS * interval);
	CHECK_EQ(sigtimedwait(&set, &info, &now), sig);
	CHECK_EQ(info.si_code, SI_TIMER);
	CHECK_EQ(info.si_value.sival_int, 42);
	CHECK(info.si_overrun >= PERIODS - 2);
	CHECK_EQ(timer_getoverrun(timer), info.si_overrun);
	/* the next is pending or will be: stopping the timer takes it away */
	sleep_ns(2 * interval);
	arm(timer, 0);
	CHECK(takes_nothing(&set));
	CHECK_EQ(timer_getoverrun(timer), 0);
	arm(timer, interval);
	sleep_ns(2 * interval);
	CHECK_SYS(timer_delete(timer));
	CHECK(takes_nothing(&set));
	CHECK_ERRNO(timer_getoverrun(timer), EINVAL);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

static void *nothing(void *arg)
{
	return arg;
}

static void *body(void *arg)
{
	check_overrun(SIGALRM, 0);
	check_overrun(SIGALRM, 1);
	check_overrun(SIGRTMIN, 0);
	check_overrun(SIGRTMIN, 1);
	return arg;
}

/* From before there are threads; faster than anybody could take its signals. */
static void early(void)
{
	struct timespec limit = { 60, 0 };
	siginfo_t info;
	timer_t timer;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN + 1);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	timer = make(SIGRTMIN + 1, 0);
	arm(timer, 2000);
	join(start(nothing, NULL));
	for (int i = 0; i < 3; i++) {
		sleep_ns(interval);
		CHECK_EQ(sigtimedwait(&set, &info, &limit), SIGRTMIN + 1);
		CHECK_EQ(timer_getoverrun(timer), info.si_overrun);
	}
	arm(timer, 0);
	CHECK(takes_nothing(&set));
	CHECK_SYS(timer_delete(timer));
	ok("from before the first thread");
}

int main(void)
{
	signal(SIGALRM, SIG_DFL);
	early();
	body(NULL);
	ok("on main");
	return finish();
}
