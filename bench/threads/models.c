// SPDX-License-Identifier: Apache-2.0
/*
 * Three workloads that tell threading models apart: nr threads that compute, that wait, and that do both by turns. In milliseconds for
 * all of it. Waiting is a byte through a pipe and back, from a thread that sleeps for a millisecond first.
 */
#include <stdlib.h>
#include <unistd.h>

#include "threads.h"

#define COMPUTE_ALL_NS 400000000 /* of all threads together */
#define WAITS 20
#define MIXED_WAITS 5
#define WAIT_NS 1000000
#define SMALL_STACK (64u << 10)

struct pair {
	int to[2], from[2];
};

static uint64_t rounds;
static int nr_waits;

static face_ret compute(void *arg)
{
	bench_spin(rounds);
	return 0;
}

/* Answers each byte a millisecond later. */
static face_ret answer(void *arg)
{
	struct pair *p = arg;
	char c;

	while (read(p->to[0], &c, 1) == 1) {
		face_sleep(WAIT_NS);
		if (write(p->from[1], &c, 1) != 1)
			break;
	}
	return 0;
}

static face_ret ask(void *arg)
{
	struct pair *p = arg;
	char c = 'x';

	for (int i = 0; i < nr_waits; i++) {
		bench_spin(rounds);
		if (write(p->to[1], &c, 1) != 1 || read(p->from[0], &c, 1) != 1)
			break;
	}
	(void)close(p->to[1]);
	return 0;
}

void bench_compute(long nr)
{
	struct face_thread *threads = calloc((size_t)nr, sizeof(*threads));
	double cpu;
	int64_t began;

	rounds = bench_rounds_of(COMPUTE_ALL_NS) / (uint64_t)nr;
	cpu = bench_cpu_s();
	began = bench_now_ns();
	for (long i = 0; threads && i < nr; i++)
		threads[i] = bench_thread(compute, NULL, 0);
	for (long i = 0; threads && i < nr; i++)
		bench_join(threads[i]);
	bench_print_one((double)(bench_now_ns() - began) / 1e6, bench_cpu_s() - cpu);
	free(threads);
}

static void ask_all(long nr)
{
	struct pair *pairs = calloc((size_t)nr, sizeof(*pairs));
	struct face_thread *threads = calloc(2 * (size_t)nr, sizeof(*threads));
	double cpu = bench_cpu_s();
	int64_t began = bench_now_ns();

	if (!pairs || !threads)
		bench_cannot("have memory", 12);
	for (long i = 0; i < nr; i++) {
		if (pipe(pairs[i].to) < 0 || pipe(pairs[i].from) < 0)
			bench_cannot("make a pipe", 24);
	}
	for (long i = 0; i < nr; i++) {
		threads[2 * i] = bench_thread(answer, &pairs[i], SMALL_STACK);
		threads[2 * i + 1] = bench_thread(ask, &pairs[i], SMALL_STACK);
	}
	for (long i = 0; i < 2 * nr; i++)
		bench_join(threads[i]);
	bench_print_one((double)(bench_now_ns() - began) / 1e6, bench_cpu_s() - cpu);
	free(pairs);
	free(threads);
}

void bench_wait(long nr)
{
	nr_waits = WAITS;
	ask_all(nr);
}

void bench_mixed(long nr)
{
	nr_waits = MIXED_WAITS;
	rounds = bench_rounds_of(COMPUTE_ALL_NS) / (uint64_t)(nr * MIXED_WAITS);
	ask_all(nr);
}
