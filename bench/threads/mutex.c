// SPDX-License-Identifier: Apache-2.0
/* One mutex, held for an instant, by nr threads as often as they can. */
#include <pthread.h>
#include <stdlib.h>

#include "threads.h"

#define USES 1000000

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static volatile long count;
static long uses;

static face_ret body(void *arg)
{
	for (long i = 0; i < uses; i++) {
		pthread_mutex_lock(&mutex);
		count = count + 1;
		pthread_mutex_unlock(&mutex);
	}
	return 0;
}

void bench_mutex(long nr)
{
	struct face_thread *threads = calloc((size_t)nr, sizeof(*threads));
	double cpu = bench_cpu_s();
	int64_t began = bench_now_ns();

	uses = USES / nr;
	for (long i = 0; threads && i < nr; i++)
		threads[i] = bench_thread(body, NULL, 0);
	for (long i = 0; threads && i < nr; i++)
		bench_join(threads[i]);
	if (count != uses * nr)
		bench_cannot("count: the mutex let two in", 0);
	bench_print_one((double)(bench_now_ns() - began) / (double)(uses * nr),
			bench_cpu_s() - cpu);
	free(threads);
}
