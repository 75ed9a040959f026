// SPDX-License-Identifier: Apache-2.0
/* Usage: NAME WORKERS [WORKLOAD]      prints lines: workload value, the least of three runs */
#include "workloads.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RUNS 3

static const struct {
	const char *name;
	double (*run)(void);
} workloads[] = {
	{ "spawn_join", spawn_join },
	{ "spawn_batch", spawn_batch },
	{ "yield", yield },
	{ "pingpong", pingpong },
	{ "ring", ring },
	{ "fork_join", fork_join },
	{ "fib", fib },
	{ "skynet_ms", skynet },
	{ "queens_ms", queens },
};

int main(int argc, char **argv)
{
	int nr_workers = argc > 1 ? atoi(argv[1]) : 0;

	if (nr_workers < 1 || argc > 3) {
		(void)fprintf(stderr, "usage: %s WORKERS [WORKLOAD]\n", argv[0]);
		return 2;
	}
	start_runtime(nr_workers);
	for (size_t i = 0; i < sizeof(workloads) / sizeof(workloads[0]); i++) {
		double least;

		if (argc > 2 && strcmp(argv[2], workloads[i].name) != 0)
			continue;
		least = workloads[i].run();
		for (int run = 1; run < RUNS; run++) {
			const double took = workloads[i].run();

			least = took < least ? took : least;
		}
		printf("%s %.2f\n", workloads[i].name, least);
		(void)fflush(stdout);
	}
	_exit(0); /* not all of the runtimes end well */
}
