// SPDX-License-Identifier: Apache-2.0
/* Two threads wake each other in turn; a round trip is two wake-ups and two waits. Timed by the hundred. */
#include "threads.h"
#include "token.h"

#define BATCH 100

static struct token to_ping, to_pong;
static struct histogram all;
static long nr_trips;

static face_ret ping(void *arg)
{
	int64_t last = bench_now_ns();

	for (long i = 0; i < nr_trips; i++) {
		token_give(&to_pong);
		token_take(&to_ping);
		if ((i + 1) % BATCH == 0) {
			int64_t now = bench_now_ns();

			histogram_add(&all, (now - last) / BATCH);
			last = now;
		}
	}
	return 0;
}

static face_ret pong(void *arg)
{
	for (long i = 0; i < nr_trips; i++) {
		token_take(&to_pong);
		token_give(&to_ping);
	}
	return 0;
}

static void play(long nr, bool is_cond)
{
	double cpu = bench_cpu_s();
	struct face_thread a, b;
	int64_t began;

	nr_trips = nr;
	token_init(&to_ping, is_cond);
	token_init(&to_pong, is_cond);
	began = bench_now_ns();
	a = bench_thread(ping, NULL, 0);
	b = bench_thread(pong, NULL, 0);
	bench_join(a);
	bench_join(b);
	bench_print(&all, (double)(bench_now_ns() - began) / (double)nr, bench_cpu_s() - cpu, 1);
}

void bench_pingpong_sem(long nr)
{
	play(nr, false);
}

void bench_pingpong_cond(long nr)
{
	play(nr, true);
}
