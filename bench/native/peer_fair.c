// SPDX-License-Identifier: Apache-2.0
/* How late a thread comes that sleeps for a millisecond at a time, while others compute and call nothing. */
#include "peer.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

#define MOST_SAMPLES 1000000
#define SAMPLES_FIRST 20
#define STARVED_US 500000

static uint64_t rounds;
static atomic_int nr_hogs;
static atomic_long nr_samples;
static double late_us[MOST_SAMPLES];

static __attribute__((noinline)) void compute(uint64_t nr)
{
	for (uint64_t i = 0; i < nr; i++)
		__asm__ volatile("" ::: "memory");
}

static int computes(void *arg)
{
	(void)arg;
	compute(rounds);
	nr_hogs--;
	return 0;
}

static int comes_late(void *arg)
{
	(void)arg;
	while (nr_hogs > 0 && nr_samples < MOST_SAMPLES) {
		const weft_time began = weft_now();

		peer_sleep(WEFT_MS);
		late_us[nr_samples] = (double)(weft_now() - began - WEFT_MS) / WEFT_US;
		nr_samples++;
	}
	return 0;
}

static int ascending(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

#define PROBE_ROUNDS 50000000

static uint64_t rounds_of(weft_time ns)
{
	const weft_time began = weft_now();

	compute(PROBE_ROUNDS);
	return (uint64_t)(PROBE_ROUNDS * ((double)ns / (double)(weft_now() - began)));
}

void peer_fairness(void)
{
	const int nr = (int)peer_arg(1, 4);
	weft_thread *sleeper, **hogs = calloc((size_t)nr, sizeof(hogs[0]));
	weft_time began, wall;
	double *late, most;
	long first, n;

	if (!hogs)
		abort();
	rounds = rounds_of(peer_arg(2, 700) * WEFT_MS);
	nr_hogs = nr;
	sleeper = peer_spawn(comes_late, NULL, 0);
	while (nr_samples < SAMPLES_FIRST)
		peer_sleep(WEFT_MS);
	first = nr_samples;
	began = weft_now();
	for (int i = 0; i < nr; i++)
		hogs[i] = peer_spawn(computes, NULL, 0);
	for (int i = 0; i < nr; i++)
		peer_join(hogs[i]);
	wall = weft_now() - began;
	peer_join(sleeper);
	late = late_us + first;
	n = nr_samples - first;
	/* It did not come at all. */
	if (n == 0)
		late[n++] = (double)wall / WEFT_US;
	qsort(late, (size_t)n, sizeof(late[0]), ascending);
	most = late[n - 1];
	peer_row("p50", late[n / 2], "us-late");
	peer_row("p99", late[n * 99 / 100], "us-late");
	peer_row("max", most, "us-late");
	peer_row("samples", (double)n, "count");
	peer_row("hogs-wall", (double)wall / WEFT_SEC, "s");
	peer_row("starved", n < SAMPLES_FIRST || most > STARVED_US, "bool");
	free(hogs);
}
