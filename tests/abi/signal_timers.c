// SPDX-License-Identifier: Apache-2.0
/*
 * alarm, setitimer and POSIX timers while threads sleep or spin.
 */
#include <sys/time.h>
#include "check.h"

static int nr_alarms, nr_prof, stop;

static void on_signal(int sig)
{
	ADD(sig == SIGALRM ? &nr_alarms : &nr_prof, 1);
}

static void *spins(void *arg)
{
	while (!LOAD(&stop))
		;
	return arg;
}

static void on_timer_thread(union sigval value)
{
	ADD((int *)value.sival_ptr, 1);
}

int main(void)
{
	struct itimerval every = { { 0, 5000 }, { 0, 5000 } }, off = { { 0, 0 }, { 0, 0 } }, left;
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	struct itimerspec spec = { .it_value.tv_nsec = 2 * MS, .it_interval.tv_nsec = 2 * MS };
	struct sigevent event = { .sigev_notify = SIGEV_THREAD };
	int nr_calls = 0;
	timer_t timer;

	sigaction(SIGALRM, &sa, NULL);
	sigaction(SIGPROF, &sa, NULL);
	CHECK_EQ(alarm(1), 0);
	CHECK_EQ(pause(), -1);
	CHECK_EQ(nr_alarms, 1);
	CHECK_EQ(alarm(100), 0);
	CHECK_EQ(alarm(0), 100);
	ok("alarm ends pause");

	pthread_t t[2] = { start(spins, NULL), start(spins, NULL) };
	nr_alarms = 0;
	CHECK_SYS(setitimer(ITIMER_REAL, &every, NULL));
	while (LOAD(&nr_alarms) < 10)
		sleep_ns(MS);
	CHECK_SYS(setitimer(ITIMER_REAL, &off, &left));
	CHECK_EQ(left.it_interval.tv_usec, 5000);
	ok("setitimer beside spinning threads");

	CHECK_SYS(setitimer(ITIMER_PROF, &every, NULL));
	while (LOAD(&nr_prof) < 3)
		sleep_ns(MS);
	CHECK_SYS(setitimer(ITIMER_PROF, &off, NULL));
	STORE(&stop, 1);
	join(t[0]);
	join(t[1]);
	ok("ITIMER_PROF counts the spinning threads");

	event.sigev_notify_function = on_timer_thread;
	event.sigev_value.sival_ptr = &nr_calls;
	CHECK_SYS(timer_create(CLOCK_MONOTONIC, &event, &timer));
	CHECK_SYS(timer_settime(timer, 0, &spec, NULL));
	while (LOAD(&nr_calls) < 5)
		sleep_ns(MS);
	CHECK_SYS(timer_delete(timer));
	ok("a timer that calls a function in a thread");
	return finish();
}
