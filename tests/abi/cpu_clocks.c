// SPDX-License-Identifier: Apache-2.0
/*
 * CPU clocks of threads: each counts what its own thread uses, whoever asks; sleeping costs nothing; the sum
 * is not more than the process used.
 */
#include <sys/resource.h>
#include <sys/times.h>
#include "check.h"

#define NR 4

static pthread_barrier_t barrier;
static int turn;
static int64_t used_by_all; /* atomic */

static int64_t own_ns(void)
{
	return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

/* Uses that much CPU time by its own clock. */
static void burn(int64_t ns)
{
	int64_t end = own_ns() + ns;

	while (own_ns() < end)
		for (volatile int i = 0; i < 1000; i++)
			;
}

static void *burns_some(void *arg)
{
	int64_t want = (int64_t)(intptr_t)arg * 20 * MS, began, used;

	pthread_barrier_wait(&barrier);
	began = own_ns();
	burn(want);
	pthread_barrier_wait(&barrier);
	used = own_ns() - began;
	CHECK(used >= want);
	ADD(&used_by_all, used);
	return NULL;
}

/* Time of two threads counts twice in the sum; no time of day says more on a machine that others share. */
static void burn_together(void)
{
	int64_t before = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	pthread_t t[NR];

	pthread_barrier_init(&barrier, NULL, NR);
	for (intptr_t i = 0; i < NR; i++)
		t[i] = start(burns_some, (void *)(i + 1));
	for (int i = 0; i < NR; i++)
		join(t[i]);
	pthread_barrier_destroy(&barrier);
	CHECK(used_by_all <= clock_ns(CLOCK_PROCESS_CPUTIME_ID) - before);
}

/* Asks only when it is done: what it used before the first question counts too, and is no more than went by. */
static void *burns_blindly(void *started_ns)
{
	int64_t end = now_ns() + 100 * MS, used;
	volatile long n = 0;

	while (now_ns() < end)
		for (int i = 0; i < 1000; i++)
			n++;
	used = own_ns();
	CHECK(used > 0);
	CHECK(used <= now_ns() - *(int64_t *)started_ns + MS);
	return NULL;
}

static void *sleeps(void *arg)
{
	int64_t before = own_ns();

	sleep_ns(200 * MS);
	CHECK(own_ns() - before < 100 * MS);
	return arg;
}

static void *waits_for_turn(void *arg)
{
	pthread_barrier_wait(&barrier);
	while (!LOAD(&turn))
		for (volatile int i = 0; i < 1000; i++)
			;
	pthread_barrier_wait(&barrier);
	return arg;
}

static void *ends(void *arg)
{
	return arg;
}

static void of_others(void)
{
	struct timespec ts = { 0, 0 };
	clockid_t clock, self;
	int64_t before, parked;
	pthread_t t;

	pthread_barrier_init(&barrier, NULL, 2);
	t = start(waits_for_turn, NULL);
	CHECK_PT(pthread_getcpuclockid(t, &clock));
	CHECK_PT(pthread_getcpuclockid(pthread_self(), &self));
	CHECK(clock != self);
	CHECK_SYS(clock_getres(clock, &ts));
	CHECK_EQ(ts.tv_sec, 0);
	pthread_barrier_wait(&barrier);
	before = clock_ns(clock);
	/* It spins: its clock goes on while we sleep on it. */
	ts = timespec_of(30 * MS);
	CHECK_EQ(clock_nanosleep(clock, 0, &ts, NULL), 0);
	CHECK(clock_ns(clock) >= before + 30 * MS);
	ts = timespec_of(before + 60 * MS);
	CHECK_EQ(clock_nanosleep(clock, TIMER_ABSTIME, &ts, NULL), 0);
	CHECK(clock_ns(clock) >= before + 60 * MS);
	CHECK_EQ(clock_nanosleep(clock, 0, &(struct timespec){ 0, SEC }, NULL), EINVAL);
	CHECK_EQ(clock_nanosleep(clock, 0, &(struct timespec){ -1, 0 }, NULL), EINVAL);
	CHECK_EQ(clock_nanosleep(clock, TIMER_ABSTIME, &(struct timespec){ 1, -1 }, NULL), EINVAL);
	STORE(&turn, 1);
	/* It waits for us: its clock stands still. */
	let_others_block();
	let_others_block();
	parked = clock_ns(clock);
	burn(30 * MS);
	CHECK(clock_ns(clock) - parked < 10 * MS);
	CHECK(llabs(clock_ns(self) - own_ns()) < 10 * MS);
	pthread_barrier_wait(&barrier);
	join(t);
	/* libc joins a thread a moment before the kernel has ended it */
	while (clock_gettime(clock, &ts) == 0)
		sched_yield();
	CHECK_ERRNO(clock_gettime(clock, &ts), EINVAL);
	CHECK_ERRNO(clock_getres(clock, &ts), EINVAL);
	CHECK_EQ(clock_nanosleep(CLOCK_THREAD_CPUTIME_ID, 0, &ts, NULL), EINVAL);
	CHECK_EQ(clock_nanosleep(self, 0, &ts, NULL), EINVAL);
	pthread_barrier_destroy(&barrier);
}

static void *asks_rusage(void *arg)
{
	struct rusage before, after;
	int64_t began = own_ns(), used;

	CHECK_SYS(getrusage(RUSAGE_THREAD, &before));
	burn(50 * MS);
	CHECK_SYS(getrusage(RUSAGE_THREAD, &after));
	used = (after.ru_utime.tv_sec - before.ru_utime.tv_sec + after.ru_stime.tv_sec -
		before.ru_stime.tv_sec) *
		       SEC +
	       (after.ru_utime.tv_usec - before.ru_utime.tv_usec + after.ru_stime.tv_usec -
		before.ru_stime.tv_usec) *
		       1000;
	CHECK(used >= 40 * MS && used < own_ns() - began + 20 * MS);
	CHECK(after.ru_maxrss > 0);
	return arg;
}

static int nr_expired, expired_value;

static void on_expiry(int sig, siginfo_t *info, void *context)
{
	(void)context;
	CHECK_EQ(sig, SIGUSR1);
	CHECK_EQ(info->si_code, SI_TIMER);
	STORE(&expired_value, info->si_value.sival_int);
	ADD(&nr_expired, 1);
}

/* Each timer takes a place in the queue of signals of its user, whom other processes have too. */
static void say_queue(void)
{
	FILE *f = fopen("/proc/self/status", "re");
	char line[128];

	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, "SigQ:", 5) == 0)
			fputs(line, stderr);
	if (f)
		fclose(f);
}

static void on_clock(clockid_t clock, int notify)
{
	struct itimerspec spec = { .it_value.tv_nsec = 20 * MS, .it_interval.tv_nsec = 10 * MS };
	struct itimerspec left;
	struct sigevent event = { .sigev_notify = notify, .sigev_signo = SIGUSR1 };
	int64_t before;
	timer_t timer;

	event.sigev_value.sival_int = 77;
	event._sigev_un._tid = gettid();
	STORE(&nr_expired, 0);
	if (CHECK_SYS(timer_create(clock, &event, &timer)) < 0) {
		say_queue();
		return;
	}
	CHECK_SYS(timer_gettime(timer, &left));
	CHECK_EQ(left.it_value.tv_nsec + left.it_value.tv_sec, 0);
	before = clock_ns(clock);
	CHECK_SYS(timer_settime(timer, 0, &spec, NULL));
	/* time that passes is not time that is used */
	sleep_ns(60 * MS);
	CHECK(clock_ns(clock) >= before + 20 * MS || !LOAD(&nr_expired));
	CHECK_SYS(timer_gettime(timer, &left));
	CHECK(left.it_value.tv_nsec > 0 && left.it_value.tv_nsec <= 20 * MS);
	CHECK_EQ(left.it_interval.tv_nsec, 10 * MS);
	while (LOAD(&nr_expired) < 3)
		for (volatile int i = 0; i < 1000; i++)
			;
	CHECK(clock_ns(clock) >= before + 40 * MS);
	CHECK_EQ(expired_value, 77);
	spec.it_interval.tv_nsec = spec.it_value.tv_nsec = 0;
	CHECK_SYS(timer_settime(timer, 0, &spec, &left));
	CHECK_EQ(left.it_interval.tv_nsec, 10 * MS);
	STORE(&nr_expired, 0);
	burn(30 * MS);
	CHECK_EQ(nr_expired, 0);
	CHECK_SYS(timer_delete(timer));
	CHECK_ERRNO(timer_gettime(timer, &left), EINVAL);
}

static void *has_timers(void *arg)
{
	clockid_t clock;

	on_clock(CLOCK_THREAD_CPUTIME_ID, SIGEV_SIGNAL);
	CHECK_PT(pthread_getcpuclockid(pthread_self(), &clock));
	on_clock(clock, SIGEV_THREAD_ID);
	return arg;
}

int main(void)
{
	struct sigaction sa = { .sa_sigaction = on_expiry, .sa_flags = SA_SIGINFO | SA_RESTART };
	int64_t process = clock_ns(CLOCK_PROCESS_CPUTIME_ID), main_clock, sum = 0, used, began;
	struct tms tms;
	clockid_t clock;

	/* before any thread, and the same thread after the first: one clock that goes on */
	burn(30 * MS);
	main_clock = own_ns();
	join(start(ends, NULL));
	CHECK(own_ns() >= main_clock);
	CHECK(own_ns() < main_clock + 500 * MS);
	ok("main");

	began = now_ns();
	join(start(burns_blindly, &began));
	ok("the first question at the end");

	burn_together();
	join(start(sleeps, NULL));
	ok("each thread its own");

	of_others();
	ok("clocks of others");

	join(start(asks_rusage, NULL));
	ok("getrusage");

	sigaction(SIGUSR1, &sa, NULL);
	join(start(has_timers, NULL));
	has_timers(NULL);
	ok("timers");

	sum = own_ns();
	used = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	CHECK(sum <= used);
	CHECK(used - process >= 300 * MS);
	CHECK_SYS(times(&tms));
	CHECK_SYS(clock_getcpuclockid(0, &clock));
	CHECK(clock_ns(clock) >= used);
	ok("the process");
	return finish();
}
