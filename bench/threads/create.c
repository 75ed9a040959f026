// SPDX-License-Identifier: Apache-2.0
/* A thread is created, runs and is destroyed: one after the other, each of them timed; and many at once. */
#include <stdlib.h>

#include "threads.h"

static face_ret nothing(void *arg)
{
	(void)arg;
	return 0;
}

void bench_create(long nr)
{
	static struct histogram h;
	int64_t began, last;
	double cpu;

	/* The first ones find neither stacks nor a warm runtime. */
	for (int i = 0; i < 100; i++)
		bench_join(bench_thread(nothing, NULL, 0));
	cpu = bench_cpu_s();
	began = last = bench_now_ns();
	for (long i = 0; i < nr; i++) {
		int64_t now;

		bench_join(bench_thread(nothing, NULL, 0));
		now = bench_now_ns();
		histogram_add(&h, now - last);
		last = now;
	}
	bench_print(&h, (double)(last - began) / (double)nr, bench_cpu_s() - cpu, 1);
	bench_print_distribution(&h);
}

/* The second time: the first maps the stacks. */
void bench_create_many(long nr)
{
	struct face_thread *threads = calloc((size_t)nr, sizeof(*threads));
	double took = 0, cpu = 0;

	for (int round = 0; threads && round < 2; round++) {
		int64_t began = bench_now_ns();

		cpu = bench_cpu_s();
		for (long i = 0; i < nr; i++)
			threads[i] = bench_thread(nothing, NULL, 0);
		for (long i = 0; i < nr; i++)
			bench_join(threads[i]);
		took = (double)(bench_now_ns() - began);
		cpu = bench_cpu_s() - cpu;
	}
	free(threads);
	bench_print_one(took / (double)nr, cpu);
}
