// SPDX-License-Identifier: Apache-2.0
/* Two threads that give way to each other all the time, which takes that they share a processor. Timed by the hundred: a look at the clock costs as much. */
#include "threads.h"

#define BATCH 100

static struct histogram all;
static long nr_yields;

static face_ret body(void *arg)
{
	struct histogram *h = arg;
	int64_t last = bench_now_ns();

	for (long i = 0; i < nr_yields; i++) {
		face_yield();
		if (h && (i + 1) % BATCH == 0) {
			int64_t now = bench_now_ns();

			histogram_add(h, (now - last) / (2 * BATCH));
			last = now;
		}
	}
	return 0;
}

void bench_yield(long nr)
{
	double cpu = bench_cpu_s();
	int64_t began;
	struct face_thread a, b;

	nr_yields = nr;
	began = bench_now_ns();
	a = bench_thread(body, &all, 0);
	b = bench_thread(body, NULL, 0);
	bench_join(a);
	bench_join(b);
	bench_print(&all, (double)(bench_now_ns() - began) / (2.0 * (double)nr),
		    bench_cpu_s() - cpu, 1);
}
