// SPDX-License-Identifier: Apache-2.0
/* A thread that sleeps for a millisecond, again and again, beside nr that compute: by how many microseconds is it late? */
#include <stdatomic.h>
#include <stdlib.h>

#include "threads.h"

#define HOG_NS 300000000
#define SLEEP_NS 1000000
#define WARM_UP 20 /* sleeps before anybody computes */

static struct histogram late;
static atomic_long nr_hogs, nr_sleeps;
static double sum_ns;
static uint64_t rounds;

static face_ret hog(void *arg)
{
	bench_spin(rounds);
	atomic_fetch_sub(&nr_hogs, 1);
	return 0;
}

static face_ret sleeper(void *arg)
{
	while (atomic_load(&nr_hogs) > 0) {
		int64_t began = bench_now_ns(), by;

		face_sleep(SLEEP_NS);
		by = bench_now_ns() - began - SLEEP_NS;
		if (atomic_fetch_add(&nr_sleeps, 1) < WARM_UP)
			continue;
		histogram_add(&late, by);
		sum_ns += (double)by;
	}
	return 0;
}

void bench_hogs(long nr)
{
	struct face_thread *threads = calloc((size_t)nr, sizeof(*threads)), sleeps;
	double cpu;

	if (!threads)
		bench_cannot("have memory", 12);
	rounds = bench_rounds_of(HOG_NS);
	atomic_store(&nr_hogs, nr);
	sleeps = bench_thread(sleeper, NULL, 0);
	while (atomic_load(&nr_sleeps) < WARM_UP)
		face_sleep(SLEEP_NS);
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
