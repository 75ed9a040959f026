// SPDX-License-Identifier: Apache-2.0
/*
 * Memory of nr threads that wait, in KiB for each: resident memory and page tables of the process, and what the kernel
 * needs for a kernel thread: its stack, as the machine's own sum tells, where threads are the kernel's.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "threads.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER, arrived = PTHREAD_COND_INITIALIZER;
static long nr_here, nr_expected;
static int is_over;

static void *body(void *arg)
{
	pthread_mutex_lock(&mutex);
	if (++nr_here == nr_expected)
		pthread_cond_signal(&arrived);
	while (!is_over)
		pthread_cond_wait(&cond, &mutex);
	pthread_mutex_unlock(&mutex);
	return arg;
}

static double kib(const char *file, const char *name)
{
	FILE *in = fopen(file, "re");
	size_t len = strlen(name);
	double value = 0;
	char line[256];

	while (in && fgets(line, sizeof(line), in)) {
		if (strncmp(line, name, len) == 0)
			value = strtod(line + len, NULL);
	}
	if (in)
		fclose(in);
	return value;
}

static double sum(void)
{
	return kib("/proc/self/status", "VmRSS:") + kib("/proc/self/status", "VmPTE:") +
	       kib("/proc/meminfo", "KernelStack:");
}

void bench_memory(long nr)
{
	pthread_t *threads = calloc((size_t)nr, sizeof(*threads));
	double before, after, cpu = bench_cpu_s();

	if (!threads)
		bench_cannot("have memory", 12);
	memset(threads, 1, (size_t)nr * sizeof(*threads)); /* it is no part of the sum */
	nr_expected = nr;
	before = sum();
	for (long i = 0; i < nr; i++)
		threads[i] = bench_thread(body, NULL, 0);
	pthread_mutex_lock(&mutex);
	while (nr_here < nr)
		pthread_cond_wait(&arrived, &mutex);
	after = sum();
	is_over = 1;
	pthread_cond_broadcast(&cond);
	pthread_mutex_unlock(&mutex);
	for (long i = 0; i < nr; i++)
		bench_join(threads[i]);
	bench_print_one((after - before) / (double)nr, bench_cpu_s() - cpu);
	free(threads);
}
