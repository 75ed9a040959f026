// SPDX-License-Identifier: Apache-2.0
/* Clocks, threads and output of the workloads; see threads.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "threads.h"

#define CALIBRATION_ROUNDS 20000000u
#define NR_POINTS 200 /* of a distribution */

int64_t bench_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

double bench_cpu_s(void)
{
	struct rusage used;

	getrusage(RUSAGE_SELF, &used);
	return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
	       (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

__attribute__((noinline)) void bench_spin(uint64_t rounds)
{
	for (uint64_t i = 0; i < rounds; i++)
		__asm__ volatile("" ::: "memory");
}

/* By CPU time: somebody else may be on this processor, too. */
uint64_t bench_rounds_of(int64_t ns)
{
	double began = bench_cpu_s(), took;

	bench_spin(CALIBRATION_ROUNDS);
	took = bench_cpu_s() - began;
	return (uint64_t)((double)CALIBRATION_ROUNDS * (double)ns / 1e9 / (took > 0 ? took : 1));
}

void bench_print(const struct histogram *h, double mean_ns, double cpu_s, double per)
{
	printf("result mean=%.3f p50=%.3f p99=%.3f max=%.3f cpu=%.6f\n", mean_ns / per,
	       (double)histogram_quantile(h, 0.5) / per, (double)histogram_quantile(h, 0.99) / per,
	       (double)h->max_ns / per, cpu_s);
}

void bench_print_one(double value, double cpu_s)
{
	printf("result mean=%.6f cpu=%.6f\n", value, cpu_s);
}

void bench_print_distribution(const struct histogram *h)
{
	printf("distribution");
	for (int i = 1; i < NR_POINTS; i++)
		printf(" %llu:%.4f",
		       (unsigned long long)histogram_quantile(h, (double)i / NR_POINTS),
		       (double)i / NR_POINTS);
	printf(" %llu:0.999 %llu:1\n", (unsigned long long)histogram_quantile(h, 0.999),
	       (unsigned long long)h->max_ns);
}

_Noreturn void bench_cannot(const char *what, int error)
{
	printf("cannot %s: %s\n", what, strerror(error));
	fflush(stdout);
	_Exit(0);
}

struct face_thread bench_thread(face_ret (*fn)(void *), void *arg, size_t stack_bytes)
{
	struct face_thread thread;
	int error = face_start(&thread, fn, arg, stack_bytes);

	if (error)
		bench_cannot("make the thread", error);
	return thread;
}

void bench_join(struct face_thread thread)
{
	int error = face_join(thread);

	if (error)
		bench_cannot("join the thread", error);
}
