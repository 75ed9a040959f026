// SPDX-License-Identifier: Apache-2.0
/*
 * Preemption keeps the machine state: vector registers, the rounding modes of SSE and x87, and
 * malloc and stdio in the middle of their work.
 */
#include <fenv.h>
#include "check.h"

#define NR 8
#define RUN_NS (300 * MS)
#define LANES 8

static int64_t end_ns;
static FILE *sink;

/* Vectors that the compiler keeps in registers over a loop without calls. */
#if defined(__x86_64__)
#define HAVE_AVX __builtin_cpu_supports("avx2")
__attribute__((target("avx2")))
#else
#define HAVE_AVX 1
#endif
static int sum_in_vectors(int seed)
{
	typeof(int __attribute__((vector_size(32)))) v[LANES], one;

	for (int i = 0; i < LANES; i++)
		for (int lane = 0; lane < 8; lane++) {
			v[i][lane] = seed * i + lane;
			one[lane] = 1;
		}
	for (int round = 0; round < 2000000; round++) {
		for (int i = 0; i < LANES; i++)
			v[i] += one;
		__asm__ volatile("");
	}
	for (int i = 0; i < LANES; i++)
		for (int lane = 0; lane < 8; lane++)
			if (v[i][lane] != seed * i + lane + 2000000)
				return 0;
	return 1;
}

static void *uses_vectors(void *arg)
{
	while (HAVE_AVX && now_ns() < end_ns)
		CHECK(sum_in_vectors((int)(intptr_t)arg));
	return NULL;
}

static void *uses_rounding(void *arg)
{
	static const int modes[] = { FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO };
	int mode = modes[(intptr_t)arg % 4];
	volatile double one = 1.0, three = 3.0;
	volatile long double long_one = 1.0L, long_three = 3.0L;

	CHECK_EQ(fegetround(), FE_TONEAREST);
	fesetround(mode);
	double want = one / three;
	long double long_want = long_one / long_three;

	while (now_ns() < end_ns) {
		for (int i = 0; i < 100000; i++)
			if (one / three != want || long_one / long_three != long_want) {
				CHECK(!"the rounding mode changed");
				return NULL;
			}
		CHECK_EQ(fegetround(), mode);
		sched_yield();
	}
	return NULL;
}

static void *uses_malloc(void *arg)
{
	char *blocks[64] = { NULL };

	for (unsigned i = 0; now_ns() < end_ns; i++) {
		size_t bytes = 16 + i * 97 % 3000;
		char **slot = &blocks[i % 64];

		if (*slot)
			CHECK_EQ((*slot)[7], (char)(intptr_t)arg);
		free(*slot);
		*slot = malloc(bytes);
		memset(*slot, (char)(intptr_t)arg, bytes);
	}
	for (int i = 0; i < 64; i++)
		free(blocks[i]);
	return NULL;
}

static void *uses_stdio(void *arg)
{
	char text[64], want[64];

	snprintf(want, sizeof(want), "%d 0.25 x", (int)(intptr_t)arg);
	while (now_ns() < end_ns) {
		snprintf(text, sizeof(text), "%d %.2f %s", (int)(intptr_t)arg, 0.25, "x");
		CHECK_STR(text, want);
		fprintf(sink, "%s\n", text);
	}
	return NULL;
}

static void run_all(void *(*fn)(void *), const char *name)
{
	pthread_t t[NR];

	end_ns = now_ns() + RUN_NS;
	for (intptr_t i = 0; i < NR; i++)
		t[i] = start(fn, (void *)(i + 1));
	for (int i = 0; i < NR; i++)
		join(t[i]);
	ok(name);
}

int main(void)
{
	sink = fopen("/dev/null", "w");
	run_all(uses_vectors, "vector registers");
	run_all(uses_rounding, "rounding modes");
	CHECK_EQ(fegetround(), FE_TONEAREST);
	run_all(uses_malloc, "malloc");
	run_all(uses_stdio, "stdio");
	return finish();
}
