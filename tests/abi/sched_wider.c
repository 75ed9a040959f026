// SPDX-License-Identifier: Apache-2.0
/*
 * A program that was started on fewer processors than it may use (taskset), and whose threads, or children, go
 * to the others.
 */
#include <sched.h>
#include "check.h"

static cpu_set_t all, first, second;
static int first_cpu = -1, second_cpu = -1;

static void is_at(int cpu, const cpu_set_t *want)
{
	cpu_set_t got;

	CHECK_SYS(sched_getaffinity(0, sizeof(got), &got));
	CHECK(CPU_EQUAL(&got, want));
	for (int i = 0; i < 20; i++) {
		sched_yield();
		CHECK_EQ(sched_getcpu(), cpu);
	}
}

static void *goes_there(void *arg)
{
	cpu_set_t none, got;

	is_at(first_cpu, &first);
	CHECK_PT(pthread_setaffinity_np(pthread_self(), sizeof(second), &second));
	is_at(second_cpu, &second);
	CPU_ZERO(&none);
	CHECK_ERRNO(sched_setaffinity(0, sizeof(none), &none), EINVAL);
	is_at(second_cpu, &second);
	CHECK_SYS(sched_setaffinity(0, sizeof(all), &all));
	CHECK_SYS(sched_getaffinity(0, sizeof(got), &got));
	CHECK(CPU_EQUAL(&got, &all));
	CHECK_SYS(sched_setaffinity(0, sizeof(first), &first));
	is_at(first_cpu, &first);
	return arg;
}

static void *waits(void *barrier)
{
	pthread_barrier_wait(barrier);
	pthread_barrier_wait(barrier);
	is_at(second_cpu, &second);
	return NULL;
}

static void sent_there(void)
{
	pthread_barrier_t barrier;
	pthread_t t;

	pthread_barrier_init(&barrier, NULL, 2);
	t = start(waits, &barrier);
	pthread_barrier_wait(&barrier);
	CHECK_PT(pthread_setaffinity_np(t, sizeof(second), &second));
	pthread_barrier_wait(&barrier);
	join(t);
	is_at(first_cpu, &first);
}

int main(void)
{
	pid_t child;

	CHECK_SYS(sched_getaffinity(0, sizeof(all), &all));
	if (CPU_COUNT(&all) < 2)
		return EXIT_SKIP;
	for (int i = 0; second_cpu < 0; i++) {
		if (!CPU_ISSET(i, &all))
			continue;
		if (first_cpu < 0)
			first_cpu = i;
		else
			second_cpu = i;
	}
	CPU_SET(first_cpu, &first);
	CPU_SET(second_cpu, &second);
	CHECK_SYS(sched_setaffinity(0, sizeof(first), &first));
	join(start(goes_there, NULL));
	ok("a thread leaves the processor on which the program was started");
	sent_there();
	ok("a thread is sent to another processor");
	child = fork();
	if (child == 0) {
		join(start(goes_there, NULL));
		_exit(finish());
	}
	reap(child);
	ok("so does a thread of a child");
	return finish();
}
