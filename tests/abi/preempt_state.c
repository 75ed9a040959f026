// SPDX-License-Identifier: Apache-2.0
/*
 * Preemption keeps the machine state: vector registers, the rounding modes of SSE and x87, and
 * malloc and stdio in the middle of their work.
 */
#include <fenv.h>
#include <sys/time.h>
#include "check.h"

#define NR 8
#define RUN_NS (300 * MS)
#define ROUNDS 1000000

static int64_t end_ns;
static FILE *sink;

/*
 * Adds one a million times in eight vector registers, without a call; true when all lanes of all
 * registers are right at the end. In assembly, because a compiler may keep vectors in memory.
 */
#if defined(__x86_64__)
#define HAVE_VECTORS __builtin_cpu_supports("avx2")
static int sum_in_vectors(int seed)
{
	unsigned char is_zero;
	int rounds = ROUNDS;

	__asm__ volatile("vmovd %2, %%xmm0\n"
			 "vpbroadcastd %%xmm0, %%ymm0\n"
			 "vmovd %3, %%xmm9\n"
			 "vpbroadcastd %%xmm9, %%ymm9\n"
			 "vpcmpeqd %%ymm8, %%ymm8, %%ymm8\n"
			 ".irp i, 1, 2, 3, 4, 5, 6, 7\n"
			 "vmovdqa %%ymm0, %%ymm\\i\n"
			 ".endr\n"
			 "1:\n"
			 ".irp i, 0, 1, 2, 3, 4, 5, 6, 7\n"
			 "vpsubd %%ymm8, %%ymm\\i, %%ymm\\i\n"
			 ".endr\n"
			 "decl %1\n"
			 "jnz 1b\n"
			 "vpxor %%ymm10, %%ymm10, %%ymm10\n"
			 ".irp i, 0, 1, 2, 3, 4, 5, 6, 7\n"
			 "vpxor %%ymm9, %%ymm\\i, %%ymm\\i\n"
			 "vpor %%ymm\\i, %%ymm10, %%ymm10\n"
			 ".endr\n"
			 "vptest %%ymm10, %%ymm10\n"
			 "setz %0\n"
			 "vzeroupper\n"
			 : "=q"(is_zero), "+r"(rounds)
			 : "r"(seed), "r"(seed + ROUNDS)
			 : "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7",
			   "xmm8", "xmm9", "xmm10");
	return is_zero;
}
#else
#define HAVE_VECTORS 1
static int sum_in_vectors(int seed)
{
	double a = seed, b = seed + 1, c = seed + 2, d = seed + 3;

	for (int i = 0; i < ROUNDS; i++) {
		a += 1, b += 1, c += 1, d += 1;
		__asm__ volatile("" : "+w"(a), "+w"(b), "+w"(c), "+w"(d));
	}
	return a == seed + ROUNDS && b == a + 1 && c == a + 2 && d == a + 3;
}
#endif

static void *uses_vectors(void *arg)
{
	while (HAVE_VECTORS && now_ns() < end_ns)
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

#if defined(__x86_64__)
static volatile sig_atomic_t nr_ticks, nr_backwards;

static void looks_at_flags(int sig)
{
	unsigned long flags;

	(void)sig;
	__asm__ volatile("pushfq\n popq %0" : "=r"(flags));
	nr_backwards += flags >> 10 & 1;
	nr_ticks++;
}

/* The control word of x87 alone: that of SSE is the same in all of them. */
static void *uses_precision(void *arg)
{
	static const unsigned short words[] = { 0x037f, 0x027f, 0x007f, 0x0b7f, 0x077f, 0x0f7f };
	unsigned short word = words[(intptr_t)arg % 6], now;

	__asm__ volatile("fldcw %0" : : "m"(word));
	while (now_ns() < end_ns) {
		for (int i = 0; i < 1000; i++)
			sched_yield();
		__asm__ volatile("fnstcw %0" : "=m"(now));
		CHECK_EQ(now, word);
	}
	return NULL;
}

/* Strings may be copied backwards while a signal comes: the handler's go forwards, and ours backwards again. */
static void *goes_backwards(void *arg)
{
	struct itimerval each = { { 0, 1000 }, { 0, 1000 } }, never = { 0 };
	unsigned long flags;

	signal(SIGALRM, looks_at_flags);
	setitimer(ITIMER_REAL, &each, NULL);
	while (nr_ticks < 100) {
		unsigned long rounds = 100000;

		__asm__ volatile("std\n"
				 "1: decq %0\n"
				 "jnz 1b\n"
				 "pushfq\n"
				 "popq %1\n"
				 "cld\n"
				 : "+r"(rounds), "=r"(flags)
				 :
				 : "cc");
		CHECK(flags >> 10 & 1);
	}
	setitimer(ITIMER_REAL, &never, NULL);
	CHECK_EQ(nr_backwards, 0);
	return arg;
}
#else
static void *uses_precision(void *arg)
{
	return arg;
}
#define goes_backwards uses_precision
#endif

static void *has_makers_mode(void *arg)
{
	CHECK_EQ(fegetround(), (intptr_t)arg);
	return NULL;
}

/* clone() copies the modes of who calls it. */
static void *makes_with_mode(void *arg)
{
	static const int modes[] = { FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO };

	for (int i = 0; i < 3; i++) {
		pthread_t t;

		fesetround(modes[i]);
		t = start(has_makers_mode, (void *)(intptr_t)modes[i]);
		fesetround(FE_TONEAREST);
		join(t);
	}
	return arg;
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
	join(start(makes_with_mode, NULL));
	ok("rounding modes of a new thread");
	run_all(uses_precision, "the control word of x87");
	join(start(goes_backwards, NULL));
	ok("the direction flag");
	run_all(uses_malloc, "malloc");
	run_all(uses_stdio, "stdio");
	return finish();
}
