// SPDX-License-Identifier: Apache-2.0
/*
 * Memory of nr threads that wait, in KiB for each: resident memory and page tables of the process, and what the kernel
 * needs for a kernel thread: its stack, as the machine's own sum tells, where threads are the kernel's.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "threads.h"

static struct face_event all_here = FACE_EVENT_INIT, is_over = FACE_EVENT_INIT;
static atomic_long nr_here;
static long nr_expected;

static face_ret body(void *arg)
{
	(void)arg;
	if (atomic_fetch_add(&nr_here, 1) + 1 == nr_expected)
		face_event_set(&all_here);
	face_event_wait(&is_over);
	return 0;
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
	struct face_thread *threads = calloc((size_t)nr, sizeof(*threads));
	double before, after, cpu = bench_cpu_s();

	if (!threads)
		bench_cannot("have memory", 12);
	memset(threads, 1, (size_t)nr * sizeof(*threads)); /* it is no part of the sum */
	nr_expected = nr;
	before = sum();
	for (long i = 0; i < nr; i++)
		threads[i] = bench_thread(body, NULL, 0);
	/* All have begun; a few of the last may not wait yet. */
	face_event_wait(&all_here);
	after = sum();
	face_event_set(&is_over);
	for (long i = 0; i < nr; i++)
		bench_join(threads[i]);
	bench_print_one((after - before) / (double)nr, bench_cpu_s() - cpu);
	free(threads);
}
