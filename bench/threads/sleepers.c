// SPDX-License-Identifier: Apache-2.0
/* nr threads that each sleep ten times for 1 to 10 ms: how long all of it takes, in milliseconds, and what it costs. */
#include <stdlib.h>

#include "threads.h"

#define SLEEPS 10

static face_ret body(void *arg)
{
	uint32_t seed = (uint32_t)(uintptr_t)arg * 2654435761u + 1;

	for (int i = 0; i < SLEEPS; i++) {
		seed = seed * 1664525u + 1013904223u;
		face_sleep(1000000 + (seed >> 8) % 9000000);
	}
	return 0;
}

void bench_sleepers(long nr)
{
	struct face_thread *threads = calloc((size_t)nr, sizeof(*threads));
	double cpu = bench_cpu_s();
	int64_t began = bench_now_ns();

	for (long i = 0; threads && i < nr; i++)
		threads[i] = bench_thread(body, (void *)i, 0);
	for (long i = 0; threads && i < nr; i++)
		bench_join(threads[i]);
	bench_print_one((double)(bench_now_ns() - began) / 1e6, bench_cpu_s() - cpu);
	free(threads);
}
