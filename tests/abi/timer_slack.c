// SPDX-License-Identifier: Apache-2.0
/*
 * The slack of timers belongs to a thread, is inherited, and delays a sleep by no more than itself.
 */
#include <sys/prctl.h>
#include "check.h"

static void *inherits(void *arg)
{
	CHECK_EQ(prctl(PR_GET_TIMERSLACK), (intptr_t)arg);
	CHECK_SYS(prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0));
	CHECK_EQ(prctl(PR_GET_TIMERSLACK), 1);
	CHECK_SYS(prctl(PR_SET_TIMERSLACK, 0, 0, 0, 0));
	CHECK_EQ(prctl(PR_GET_TIMERSLACK), (intptr_t)arg);
	return NULL;
}

static void child_inherits(int slack)
{
	pid_t pid = CHECK_SYS(fork());
	int status;

	if (pid == 0) {
		CHECK_EQ(prctl(PR_GET_TIMERSLACK), slack);
		CHECK_SYS(prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0));
		CHECK_SYS(prctl(PR_SET_TIMERSLACK, 0, 0, 0, 0));
		CHECK_EQ(prctl(PR_GET_TIMERSLACK), slack);
		_exit(finish());
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
}

static void *sleeps(void *arg)
{
	int64_t before;

	CHECK_SYS(prctl(PR_SET_TIMERSLACK, 5 * MS, 0, 0, 0));
	for (int i = 0; i < 20; i++) {
		struct timespec ts = timespec_of(i * 300000);

		before = now_ns();
		CHECK_SYS(nanosleep(&ts, NULL));
		CHECK(now_ns() - before >= i * 300000);
	}
	for (int clock = 0; clock < 2; clock++) {
		int64_t at = clock_ns(clock ? CLOCK_MONOTONIC : CLOCK_REALTIME) + 3 * MS;
		struct timespec ts = timespec_of(at);

		CHECK_EQ(clock_nanosleep(clock ? CLOCK_MONOTONIC : CLOCK_REALTIME, TIMER_ABSTIME,
					 &ts, NULL),
			 0);
		CHECK(clock_ns(clock ? CLOCK_MONOTONIC : CLOCK_REALTIME) >= at);
	}
	return arg;
}

int main(void)
{
	int usual = prctl(PR_GET_TIMERSLACK);

	join(start(inherits, (void *)(intptr_t)usual));
	CHECK_EQ(prctl(PR_GET_TIMERSLACK), usual);
	CHECK_SYS(prctl(PR_SET_TIMERSLACK, 12345, 0, 0, 0));
	join(start(inherits, (void *)12345));
	CHECK_EQ(prctl(PR_GET_TIMERSLACK), 12345);
	child_inherits(12345);
	CHECK_SYS(prctl(PR_SET_TIMERSLACK, 0, 0, 0, 0));
	CHECK_EQ(prctl(PR_GET_TIMERSLACK), usual);
	child_inherits(usual);
	ok("every thread has its own");
	join(start(sleeps, NULL));
	ok("no sleep ends early");
	return finish();
}
