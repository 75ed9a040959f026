// SPDX-License-Identifier: Apache-2.0
/*
 * alarm, setitimer and POSIX timers while threads sleep or spin.
 */
#include <sys/time.h>
#include "check.h"

static int nr_alarms, nr_prof, nr_short, stop;

static void on_signal(int sig)
{
	ADD(sig == SIGALRM                       ? &nr_alarms
	    : sig == SIGPROF || sig == SIGVTALRM ? &nr_prof
						 : &nr_short,
	    1);
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

/* Over before the call that starts it returns: its signal is no old one of that timer. */
static void is_over_at_once(void)
{
	const struct itimerspec at_once = { .it_value.tv_nsec = 1 },
				bad = { .it_value.tv_nsec = SEC };
	const struct itimerspec late = { .it_value.tv_sec = 1000 };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
	struct itimerspec left;
	timer_t timer;

	CHECK_SYS(timer_create(CLOCK_MONOTONIC, &event, &timer));
	for (int i = 1; i <= 50; i++) {
		CHECK_SYS(timer_settime(timer, i % 2 ? TIMER_ABSTIME : 0, &at_once, NULL));
		while (LOAD(&nr_short) < i)
			sched_yield();
		CHECK_EQ(nr_short, i);
	}
	/* what is refused leaves the timer as it was */
	CHECK_SYS(timer_settime(timer, 0, &late, NULL));
	CHECK_ERRNO(timer_settime(timer, 0, &bad, NULL), EINVAL);
	CHECK_SYS(timer_gettime(timer, &left));
	CHECK(left.it_value.tv_sec > 0);
	CHECK_SYS(timer_settime(timer, 0, &at_once, &left));
	CHECK(left.it_value.tv_sec > 0);
	while (LOAD(&nr_short) < 51)
		sched_yield();
	CHECK_SYS(timer_delete(timer));
	ok("a timer that is over at once");
}

int main(void)
{
	struct itimerval every = { { 0, 5000 }, { 0, 5000 } }, off = { { 0, 0 }, { 0, 0 } }, left;
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	struct itimerspec spec = { .it_value.tv_nsec = 2 * MS, .it_interval.tv_nsec = 2 * MS };
	struct sigevent event = { .sigev_notify = SIGEV_THREAD };
	int nr_calls = 0;
	sigset_t alrm, before;
	timer_t timer;

	have_threads();
	sigaction(SIGALRM, &sa, NULL);
	sigaction(SIGPROF, &sa, NULL);
	sigaction(SIGVTALRM, &sa, NULL);
	sigaction(SIGUSR1, &sa, NULL);
	/* blocked until the wait begins, which may be later than the alarm */
	sigemptyset(&alrm);
	sigaddset(&alrm, SIGALRM);
	sigprocmask(SIG_BLOCK, &alrm, &before);
	CHECK_EQ(alarm(1), 0);
	CHECK_EQ(sigsuspend(&before), -1);
	CHECK_EQ(nr_alarms, 1);
	sigprocmask(SIG_SETMASK, &before, NULL);
	CHECK_EQ(alarm(100), 0);
	CHECK(alarm(0) > 0);
	ok("alarm ends sigsuspend");

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
	STORE(&nr_prof, 0);
	CHECK_SYS(setitimer(ITIMER_VIRTUAL, &every, NULL));
	while (LOAD(&nr_prof) < 3)
		sleep_ns(MS);
	CHECK_SYS(setitimer(ITIMER_VIRTUAL, &off, NULL));
	STORE(&stop, 1);
	join(t[0]);
	join(t[1]);
	ok("ITIMER_PROF and ITIMER_VIRTUAL count the spinning threads");

	event.sigev_notify_function = on_timer_thread;
	event.sigev_value.sival_ptr = &nr_calls;
	CHECK_SYS(timer_create(CLOCK_MONOTONIC, &event, &timer));
	CHECK_SYS(timer_settime(timer, 0, &spec, NULL));
	while (LOAD(&nr_calls) < 5)
		sleep_ns(MS);
	CHECK_SYS(timer_delete(timer));
	ok("a timer that calls a function in a thread");
	is_over_at_once();
	return finish();
}
