// SPDX-License-Identifier: Apache-2.0
/* Clocks, sleeps and timers: what the calls return for good and bad arguments. */
#include "show.h"

#include <sys/resource.h>
#include <sys/time.h>
#include <sys/timex.h>

static void *calls(void *arg)
{
	struct timespec ts = { 0, 1000 }, bad = { 0, 1000000000 }, neg = { -1, 0 }, past = { 0, 0 },
			rem;
	timer_t t;
	struct sigevent ev = { 0 };
	struct itimerspec it = { 0 };
	int tid;
	clockid_t c;
	SHOW(CALL(nanosleep, &ts, NULL));
	SHOW(CALL(nanosleep, &bad, NULL));
	SHOW(CALL(nanosleep, &neg, NULL));
	SHOW(CALL(nanosleep, BAD, NULL));
	SHOW(CALL(nanosleep, NULL, NULL));
	SHOW(CALL(nanosleep, &past, BAD));
	SHOW(CALL(nanosleep, &ts, &rem));
	int clocks[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 16, -1, 99 };
	for (int i = 0; i < 16; i++) {
		int k = clocks[i];
		printf("clock %d\n", k);
		SHOW(CALL(clock_nanosleep, k, 0, &past, NULL));
		if (k != 2)
			SHOW(CALL(clock_nanosleep, k, 0, &ts, NULL));
		SHOW(CALL(clock_nanosleep, k, TIMER_ABSTIME, &past, NULL));
		SHOW(CALL(clock_nanosleep, k, 0, &bad, NULL));
		SHOW(CALL(clock_nanosleep, k, 0, BAD, NULL));
		SHOW(CALL(clock_nanosleep, k, 77, &past, NULL));
		SHOW(CALL(clock_gettime, k, &rem));
		SHOW(CALL(clock_gettime, k, BAD));
		SHOW(CALL(clock_getres, k, &rem));
		SHOW(CALL(clock_getres, k, NULL));
		SHOW(clock_gettime(k, &rem));
		SHOW(clock_getres(k, &rem));
		SHOW_PT(clock_nanosleep(k, 0, &past, NULL));
		ev.sigev_notify = SIGEV_NONE;
		int r = CALL(timer_create, k, &ev, &tid);
		printf("timer_create %d %s\n", r, r ? strerrorname_np(errno) : "");
		if (!r) {
			SHOW(CALL(timer_gettime, tid, &it));
			SHOW(CALL(timer_delete, tid));
		}
	}
	ev.sigev_notify = SIGEV_SIGNAL;
	ev.sigev_signo = 65;
	SHOW(CALL(timer_create, 1, &ev, &tid));
	ev.sigev_signo = 0;
	SHOW(CALL(timer_create, 1, &ev, &tid));
	ev.sigev_signo = SIGUSR1;
	ev.sigev_notify = 77;
	SHOW(CALL(timer_create, 1, &ev, &tid));
	SHOW(CALL(timer_create, CLOCK_THREAD_CPUTIME_ID, &ev, &tid));
	ev.sigev_notify = SIGEV_THREAD_ID;
	ev._sigev_un._tid = other_tid;
	SHOW(CALL(timer_create, 1, &ev, &tid));
	SHOW(CALL(timer_delete, tid));
	ev._sigev_un._tid = dead_tid;
	SHOW(CALL(timer_create, 1, &ev, &tid));
	ev._sigev_un._tid = 0;
	SHOW(CALL(timer_create, 1, &ev, &tid));
	ev._sigev_un._tid = 1;
	SHOW(CALL(timer_create, 1, &ev, &tid));
	ev._sigev_un._tid = getpid();
	SHOW(CALL(timer_create, 1, &ev, &tid));
	SHOW(CALL(timer_delete, tid));
	ev._sigev_un._tid = my_tid();
	ev.sigev_signo = 70;
	SHOW(CALL(timer_create, 1, &ev, &tid));
	SHOW(CALL(timer_create, 1, BAD, &tid));
	SHOW(CALL(timer_create, 1, NULL, BAD));
	ev.sigev_notify = SIGEV_SIGNAL;
	ev.sigev_signo = SIGUSR1;
	SHOW(CALL(timer_create, 1, &ev, BAD));
	SHOW(CALL(timer_create, CLOCK_THREAD_CPUTIME_ID, &ev, BAD));
	SHOW(CALL(timer_delete, 12345));
	SHOW(CALL(timer_gettime, 12345, &it));
	SHOW(CALL(timer_settime, 12345, 0, &it, NULL));
	SHOW(CALL(timer_getoverrun, 12345));
	ev.sigev_notify = SIGEV_NONE;
	SHOW(timer_create(CLOCK_MONOTONIC, &ev, &t));
	SHOW(timer_gettime(t, BAD));
	SHOW(timer_settime(t, 0, BAD, NULL));
	SHOW(timer_settime(t, 0, NULL, NULL));
	it.it_value.tv_nsec = 1000000000;
	SHOW(timer_settime(t, 0, &it, NULL));
	it.it_value.tv_nsec = 0;
	it.it_value.tv_sec = 1000;
	SHOW(timer_settime(t, 0, &it, NULL));
	SHOW(timer_gettime(t, &it));
	SHOW(timer_getoverrun(t));
	SHOW(timer_settime(t, TIMER_ABSTIME, &it, &(struct itimerspec){ 0 }));
	SHOW(timer_delete(t));

	struct itimerval iv = { 0 };
	SHOW(CALL(getitimer, 0, &iv));
	SHOW(CALL(getitimer, 3, &iv));
	SHOW(CALL(getitimer, 0, BAD));
	SHOW(CALL(setitimer, 0, BAD, NULL));
	SHOW(CALL(setitimer, 0, NULL, NULL));
	SHOW(CALL(setitimer, 3, &iv, NULL));
	iv.it_value.tv_usec = 1000000;
	SHOW(CALL(setitimer, 0, &iv, NULL));
	SHOW(alarm(0));
	SHOW(alarm(100));
	SHOW(alarm(0) > 0);
	SHOW(ualarm(0, 0));
	SHOW(usleep(1));

	SHOW(clock_settime(CLOCK_MONOTONIC, &ts));
	SHOW(clock_settime(99, &ts));
	SHOW(clock_settime(CLOCK_REALTIME, &bad));
	SHOW(clock_adjtime(CLOCK_MONOTONIC, &(struct timex){ 0 }));
	SHOW(clock_adjtime(99, &(struct timex){ 0 }));
	SHOW_PT(pthread_getcpuclockid(other, &c));
	SHOW(clock_gettime(c, &ts));
	SHOW(clock_getres(c, &ts));
	SHOW_PT(clock_getcpuclockid(0, &c));
	SHOW(clock_gettime(c, &ts));
	SHOW_PT(clock_getcpuclockid(0x3ffffff, &c));
	SHOW_PT(clock_getcpuclockid(other_tid, &c));
	SHOW_PT(clock_getcpuclockid(getpid(), &c));
	struct rusage ru;
	SHOW(getrusage(RUSAGE_THREAD, &ru));
	SHOW(CALL(getrusage, RUSAGE_THREAD, BAD));
	SHOW(getrusage(5, &ru));

	fflush(stdout);
	_exit(finish());
	return arg;
}

int main(void)
{
	return show_in_thread(calls);
}
