// SPDX-License-Identifier: Apache-2.0
/*
 * bench-threads and bench-threads-native, WORKLOAD[/CPUS] [COUNT]: one workload, then the end; on so many processors, where
 * that is said. See threads.h.
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "threads.h"

static const struct {
	const char *name;
	void (*run)(long nr);
	long nr;
} workloads[] = {
	{ "create", bench_create, 20000 },
	{ "create-many", bench_create_many, 10000 },
	{ "yield", bench_yield, 500000 },
	{ "pingpong-sem", bench_pingpong_sem, 100000 },
	{ "pingpong-cond", bench_pingpong_cond, 100000 },
	{ "ring", bench_ring, 503 },
	{ "ring-deep", bench_ring_deep, 503 },
	{ "mutex", bench_mutex, 64 },
	{ "sleepers", bench_sleepers, 10000 },
	{ "memory", bench_memory, 10000 },
	{ "hogs", bench_hogs, 4 },
	{ "compute", bench_compute, 8 },
	{ "wait", bench_wait, 1000 },
	{ "mixed", bench_mixed, 100 },
};

#define NR_WORKLOADS (sizeof(workloads) / sizeof(workloads[0]))

/* The first nr of those that we may use. */
static void stay_on(long nr)
{
	cpu_set_t may, set;

	if (sched_getaffinity(0, sizeof(may), &may) < 0)
		return;
	CPU_ZERO(&set);
	for (int cpu = 0; cpu < CPU_SETSIZE && nr > 0; cpu++) {
		if (CPU_ISSET(cpu, &may)) {
			CPU_SET(cpu, &set);
			nr--;
		}
	}
	(void)sched_setaffinity(0, sizeof(set), &set);
}

int main(int argc, char **argv)
{
	char *cpus = argc > 1 ? strchr(argv[1], '/') : NULL;

	if (cpus) {
		*cpus = '\0';
		stay_on(strtol(cpus + 1, NULL, 10));
	}
	for (size_t i = 0; argc > 1 && i < NR_WORKLOADS; i++) {
		if (strcmp(argv[1], workloads[i].name) != 0)
			continue;
		if (face_why_not()) {
			printf("cannot run on weft: %s\n", face_why_not());
			return 0;
		}
		workloads[i].run(argc > 2 ? strtol(argv[2], NULL, 10) : workloads[i].nr);
		return 0;
	}
	fprintf(stderr, "usage: " FACE_PROGRAM " WORKLOAD[/CPUS] [COUNT], a workload of:");
	for (size_t i = 0; i < NR_WORKLOADS; i++)
		fprintf(stderr, " %s", workloads[i].name);
	fputc('\n', stderr);
	return 2;
}
