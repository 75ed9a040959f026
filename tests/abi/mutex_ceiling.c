// SPDX-License-Identifier: Apache-2.0
/*
 * Mutexes with a priority ceiling: who holds one runs at its ceiling, and at its own priority again afterwards. Needs
 * the right to use real-time policies.
 */
#include "check.h"

#include <sched.h>

#define OWN 3
#define LOW 5
#define HIGH 9
#define NR 4
#define TURNS 50

static pthread_mutex_t low, high, of_all;
static int sum;

static void make(pthread_mutex_t *m, int ceiling)
{
	pthread_mutexattr_t attr;
	int got = 0;

	pthread_mutexattr_init(&attr);
	CHECK_PT(pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_PROTECT));
	CHECK_PT(pthread_mutexattr_setprioceiling(&attr, ceiling));
	CHECK_PT(pthread_mutex_init(m, &attr));
	CHECK_PT(pthread_mutex_getprioceiling(m, &got));
	CHECK_EQ(got, ceiling);
	pthread_mutexattr_destroy(&attr);
}

static void check_priority(int want)
{
	struct sched_param p;
	int policy;

	CHECK_SYS(sched_getparam(0, &p));
	CHECK_EQ(p.sched_priority, want);
	CHECK_EQ(sched_getscheduler(0), SCHED_FIFO);
	CHECK_PT(pthread_getschedparam(pthread_self(), &policy, &p));
	CHECK_EQ(p.sched_priority, OWN);
	CHECK_EQ(policy, SCHED_FIFO);
}

static void *locks(void *arg)
{
	int old = 0;

	check_priority(OWN);
	CHECK_PT(pthread_mutex_lock(&low));
	check_priority(LOW);
	CHECK_PT(pthread_mutex_trylock(&high));
	check_priority(HIGH);
	CHECK_PT(pthread_mutex_unlock(&low));
	check_priority(HIGH);
	CHECK_PT(pthread_mutex_unlock(&high));
	check_priority(OWN);
	CHECK_PT(pthread_mutex_setprioceiling(&low, OWN - 1, &old));
	CHECK_EQ(old, LOW);
	CHECK_EQ(pthread_mutex_lock(&low), EINVAL); /* it runs above the ceiling */
	CHECK_PT(pthread_mutex_setprioceiling(&low, LOW, &old));
	CHECK_EQ(old, OWN - 1);
	check_priority(OWN);
	return arg;
}

static void *counts(void *arg)
{
	for (int i = 0; i < TURNS; i++) {
		CHECK_PT(pthread_mutex_lock(&of_all));
		sum++;
		sched_yield();
		CHECK_PT(pthread_mutex_unlock(&of_all));
	}
	check_priority(OWN);
	return arg;
}

int main(void)
{
	struct sched_param p = { .sched_priority = OWN };
	pthread_attr_t attr;
	pthread_t t[NR];

	make(&low, LOW);
	make(&high, HIGH);
	make(&of_all, HIGH);
	pthread_attr_init(&attr);
	CHECK_PT(pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED));
	CHECK_PT(pthread_attr_setschedpolicy(&attr, SCHED_FIFO));
	CHECK_PT(pthread_attr_setschedparam(&attr, &p));
	if (pthread_create(&t[0], &attr, locks, NULL) == EPERM)
		return EXIT_SKIP;
	join(t[0]);
	ok("the ceiling of what is held");
	for (int i = 0; i < NR; i++)
		CHECK_PT(pthread_create(&t[i], &attr, counts, NULL));
	for (int i = 0; i < NR; i++)
		join(t[i]);
	CHECK_EQ(sum, NR * TURNS);
	ok("turns at the ceiling");
	return finish();
}
