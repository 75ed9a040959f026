// SPDX-License-Identifier: Apache-2.0
/* The workloads, which start_runtime() comes before; each returns how long it took, in ns for one thread, switch or call, or in ms. */
#ifndef BENCH_PEERS_WORKLOADS_H
#define BENCH_PEERS_WORKLOADS_H

#include <time.h>

#define FIB 27
#define FIB_RESULT 196418
#define FIB_FORKS 317810 /* fib(FIB + 1) - 1 */
#define SKYNET 1000000
#define SKYNET_RESULT 499999500000
#define QUEENS 10
#define QUEENS_RESULT 724

static inline double now_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

void start_runtime(int nr_workers);

double spawn_join(void);
double spawn_batch(void);
double yield(void);
double pingpong(void);
double ring(void);

double fork_join(void);
double fib(void);
double skynet(void);
double queens(void);

#endif
