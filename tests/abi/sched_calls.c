// SPDX-License-Identifier: Apache-2.0
/*
 * sched_* and their pthread_* faces on several threads: yield, affinity, policy, priority limits.
 */
#include <sched.h>
#include <sys/resource.h>
#include "check.h"

#define YIELDS 1000 /* natively each may cost the slices of others who compute on this machine */

static void *asks(void *arg)
{
	cpu_set_t all, one, got;
	struct sched_param param = { .sched_priority = -1 };
	int policy = -1, first = 0;

	CHECK_SYS(sched_getaffinity(0, sizeof(all), &all));
	CHECK(CPU_COUNT(&all) >= 1);
	CHECK_PT(pthread_getaffinity_np(pthread_self(), sizeof(got), &got));
	CHECK(CPU_EQUAL(&all, &got));
	while (!CPU_ISSET(first, &all))
		first++;
	CPU_ZERO(&one);
	CPU_SET(first, &one);
	CHECK_PT(pthread_setaffinity_np(pthread_self(), sizeof(one), &one));
	CHECK_SYS(sched_getaffinity(gettid(), sizeof(got), &got));
	CHECK(CPU_EQUAL(&one, &got));
	for (int i = 0; i < 20; i++) {
		sched_yield();
		CHECK_EQ(sched_getcpu(), first);
	}
	CHECK_SYS(sched_setaffinity(0, sizeof(all), &all));
	CPU_ZERO(&one);
	CHECK_EQ(pthread_setaffinity_np(pthread_self(), sizeof(one), &one), EINVAL);
	CHECK_SYS(sched_getaffinity(0, sizeof(got), &got));
	CHECK(CPU_EQUAL(&all, &got));

	CHECK_PT(pthread_getschedparam(pthread_self(), &policy, &param));
	CHECK_EQ(policy, SCHED_OTHER);
	CHECK_EQ(param.sched_priority, 0);
	CHECK_EQ(sched_getscheduler(0), SCHED_OTHER);
	CHECK_EQ(sched_getscheduler(gettid()), SCHED_OTHER);
	CHECK_SYS(sched_getparam(gettid(), &param));
	CHECK_PT(pthread_setschedparam(pthread_self(), SCHED_BATCH, &param));
	CHECK_EQ(sched_getscheduler(0), SCHED_BATCH);
	CHECK_PT(pthread_getschedparam(pthread_self(), &policy, &param));
	CHECK_EQ(policy, SCHED_BATCH);
	param.sched_priority = 5;
	CHECK_EQ(pthread_setschedparam(pthread_self(), SCHED_OTHER, &param), EINVAL);
	param.sched_priority = 0;
	CHECK_PT(pthread_setschedparam(pthread_self(), SCHED_OTHER, &param));
	CHECK_EQ(pthread_setschedparam(pthread_self(), SCHED_FIFO, &param), EINVAL);
	return arg;
}

static void *yields(void *arg)
{
	for (int i = 0; i < YIELDS; i++)
		CHECK_EQ(sched_yield(), 0);
	return arg;
}

static void *tells_own(void *arg)
{
	int *got = arg;

	errno = 0;
	got[0] = getpriority(PRIO_PROCESS, 0);
	CHECK_EQ(errno, 0);
	got[1] = sched_getscheduler(0);
	return NULL;
}

/* With the flag a thread has nothing of its maker's that needs a right; what is below the usual stays. */
static void *resets(void *arg)
{
	static const struct {
		int policy, nice, want_policy, want_nice;
	} cases[] = {
		{ SCHED_OTHER, 5, SCHED_OTHER, 5 },
		{ SCHED_BATCH, 7, SCHED_BATCH, 7 },
		{ SCHED_OTHER, -5, SCHED_OTHER, 0 },
		{ SCHED_BATCH, -1, SCHED_BATCH, 0 },
	};
	const struct sched_param none = { 0 };

	if (setpriority(PRIO_PROCESS, 0, -1)) /* root, but without the right */
		return arg;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int got[2];

		CHECK_SYS(setpriority(PRIO_PROCESS, 0, cases[i].nice));
		CHECK_SYS(sched_setscheduler(0, cases[i].policy, &none));
		join(start(tells_own, got));
		CHECK_EQ(got[0], cases[i].nice);
		CHECK_EQ(got[1], cases[i].policy);
		CHECK_SYS(sched_setscheduler(0, cases[i].policy | SCHED_RESET_ON_FORK, &none));
		CHECK_EQ(sched_getscheduler(0), cases[i].policy | SCHED_RESET_ON_FORK);
		join(start(tells_own, got));
		CHECK_EQ(got[0], cases[i].want_nice);
		CHECK_EQ(got[1], cases[i].want_policy);
		join(start(tells_own, got));
		CHECK_EQ(getpriority(PRIO_PROCESS, 0), cases[i].nice);
		CHECK_SYS(sched_setscheduler(0, cases[i].policy, &none));
	}
	return arg;
}

int main(void)
{
	pthread_t t[10];

	for (int i = 0; i < 10; i++)
		t[i] = start(yields, NULL);
	for (int i = 0; i < 10; i++)
		join(t[i]);
	ok("10 threads yield");

	for (int i = 0; i < 10; i++)
		t[i] = start(asks, NULL);
	for (int i = 0; i < 10; i++)
		join(t[i]);
	ok("affinity and policy of 10 threads");
	asks(NULL);
	ok("affinity and policy of main");

	if (geteuid() == 0)
		join(start(resets, NULL));
	ok("reset on fork");

	CHECK_EQ(sched_get_priority_min(SCHED_FIFO), 1);
	CHECK_EQ(sched_get_priority_max(SCHED_FIFO), 99);
	CHECK_ERRNO(sched_getscheduler(-1), EINVAL);
	ok("limits and errors");
	return finish();
}
