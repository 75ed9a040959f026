// SPDX-License-Identifier: Apache-2.0
/* A thread that sleeps for a millisecond, again and again, beside nr that compute: by how many microseconds is it late? */
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "threads.h"

#define HOG_NS 300000000
#define SLEEP_NS 1000000
#define WARM_UP 20 /* sleeps before anybody computes */

static struct histogram late;
static atomic_long nr_hogs, nr_sleeps;
static double sum_ns;
static uint64_t rounds;

static void *hog(void *arg)
{
	bench_spin(rounds);
	atomic_fetch_sub(&nr_hogs, 1);
	return arg;
}

static void *sleeper(void *arg)
{
	const struct timespec ts = { .tv_nsec = SLEEP_NS };

	while (atomic_load(&nr_hogs) > 0) {
		int64_t began = bench_now_ns(), by;

		(void)nanosleep(&ts, NULL);
		by = bench_now_ns() - began - SLEEP_NS;
		if (atomic_fetch_add(&nr_sleeps, 1) < WARM_UP)
			continue;
		histogram_add(&late, by);
		sum_ns += (double)by;
	}
	return arg;
}

void bench_hogs(long nr)
{
	pthread_t *threads = calloc((size_t)nr, sizeof(*threads)), sleeps;
	const struct timespec ts = { .tv_nsec = SLEEP_NS };
	double cpu;

	if (!threads)
		bench_cannot("have memory", 12);
	rounds = bench_rounds_of(HOG_NS);
	atomic_store(&nr_hogs, nr);
	sleeps = bench_thread(sleeper, NULL, 0);
	while (atomic_load(&nr_sleeps) < WARM_UP)
		(void)nanosleep(&ts, NULL);
	cpu = bench_cpu_s();
	for (long i = 0; i < nr; i++)
		threads[i] = bench_thread(hog, NULL, 0);
	for (long i = 0; i < nr; i++)
		bench_join(threads[i]);
	bench_join(sleeps);
	/* One that never ran meanwhile was late by all of it. */
	if (late.nr == 0)
		bench_cannot("be woken beside them", 110);
	bench_print(&late, sum_ns / (double)late.nr, bench_cpu_s() - cpu, 1000);
	free(threads);
}
