// SPDX-License-Identifier: Apache-2.0
/* Fibers: what one has of its own, and what is its thread's. */
#include <weft/fiber.h>

#include "tap.h"

#include <errno.h>
#include <fenv.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void *changes_rounding(void *arg)
{
	const int before = fegetround();

	fesetround(FE_UPWARD);
	(void)weft_fiber_yield(NULL);
	CHECK_EQ(fegetround(), FE_UPWARD);
	fesetround(FE_TOWARDZERO);
	(void)weft_fiber_yield(NULL);
	CHECK_EQ(fegetround(), FE_TOWARDZERO);
	return (void *)(intptr_t)before;
}

TEST(rounding_modes_are_its_own_and_begin_as_its_makers)
{
	weft_fiber *f;

	fesetround(FE_DOWNWARD);
	f = weft_fiber_new(changes_rounding, NULL);
	fesetround(FE_TONEAREST);
	for (int i = 0; i < 2; i++) {
		(void)weft_fiber_resume(f, NULL);
		CHECK_EQ(fegetround(), FE_TONEAREST);
	}
	CHECK_EQ((intptr_t)weft_fiber_resume(f, NULL), FE_DOWNWARD);
	CHECK_EQ(fegetround(), FE_TONEAREST);
	weft_fiber_free(f);
}

#ifdef __x86_64__
/* Each of the two words by itself, while the other is as it was. */
static void *changes_one_word(void *arg)
{
	const uint32_t up = 0x1f80 | 0x4000;
	const uint16_t to_zero = 0x37f | 0xc00;
	uint32_t mxcsr = 0;
	uint16_t x87 = 0;

	if (arg)
		__asm__ volatile("ldmxcsr %0" : : "m"(up));
	else
		__asm__ volatile("fldcw %0" : : "m"(to_zero));
	(void)weft_fiber_yield(NULL);
	__asm__ volatile("stmxcsr %0" : "=m"(mxcsr));
	__asm__ volatile("fnstcw %0" : "=m"(x87));
	CHECK_EQ(mxcsr & 0xffc0, arg ? up : 0x1f80);
	CHECK_EQ(x87, arg ? 0x37f : to_zero);
	return NULL;
}

TEST(rounding_modes_of_both_units_are_kept)
{
	static char sse;
	weft_fiber *f[2] = { weft_fiber_new(changes_one_word, NULL),
			     weft_fiber_new(changes_one_word, NULL) };
	uint32_t mxcsr;
	uint16_t x87;

	for (int i = 0; i < 4; i++) {
		(void)weft_fiber_resume(f[i % 2], i % 2 ? NULL : &sse);
		__asm__ volatile("stmxcsr %0" : "=m"(mxcsr));
		__asm__ volatile("fnstcw %0" : "=m"(x87));
		CHECK_EQ(mxcsr & 0xffc0, 0x1f80);
		CHECK_EQ(x87, 0x37f);
	}
	weft_fiber_free(f[0]);
	weft_fiber_free(f[1]);
}
#endif

/* So many values are alive across the switch that the compiler uses all registers that a call keeps. */
static void *keeps_registers(void *arg)
{
	uintptr_t a = (uintptr_t)arg, b = a + 1, c = a * 3, d = a ^ 0x55, e = a << 3, f = ~a;

	for (uintptr_t i = 0; i < 100; i++) {
		__asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f));
		(void)weft_fiber_yield(NULL);
		a += i, b += a, c ^= b, d += c, e ^= d, f += e;
	}
	return (void *)(a ^ b ^ c ^ d ^ e ^ f);
}

static uintptr_t expected_of(uintptr_t a)
{
	uintptr_t b = a + 1, c = a * 3, d = a ^ 0x55, e = a << 3, f = ~a;

	for (uintptr_t i = 0; i < 100; i++)
		a += i, b += a, c ^= b, d += c, e ^= d, f += e;
	return a ^ b ^ c ^ d ^ e ^ f;
}

TEST(registers_are_kept)
{
	weft_fiber *f[3];
	uintptr_t result[3];

	for (size_t i = 0; i < 3; i++) {
		f[i] = weft_fiber_new(keeps_registers, NULL);
		(void)weft_fiber_resume(f[i], (void *)(i + 77));
	}
	for (int n = 0; n < 100; n++)
		for (size_t i = 0; i < 3; i++)
			result[i] = (uintptr_t)weft_fiber_resume(f[i], NULL);
	for (size_t i = 0; i < 3; i++) {
		CHECK(weft_fiber_is_done(f[i]));
		CHECK_EQ(result[i], expected_of(i + 77));
		weft_fiber_free(f[i]);
	}
}

/* The same on families that have more of them, floating-point ones among them. */
struct many {
	uintptr_t a, b, c, d, e, f, g, h, i, j;
	double p, q, r, s, t, u, v, w;
};

static inline struct many step(struct many m)
{
	m.a += 1, m.b += m.a, m.c ^= m.b, m.d += m.c, m.e ^= m.d;
	m.f += m.e, m.g += m.f, m.h ^= m.g, m.i += m.h, m.j += m.i;
	m.p *= 0.5, m.q = m.q * 0.5 + m.p, m.r = m.r * 0.5 + m.q, m.s = m.s * 0.5 + m.r;
	m.t = m.t * 0.5 + m.s, m.u = m.u * 0.5 + m.t, m.v = m.v * 0.5 + m.u, m.w = m.w * 0.5 + m.v;
	return m;
}

static struct many many_of(uintptr_t n)
{
	const double x = (double)n;

	return (struct many){ n,     n + 1, n + 2, n + 3, n + 4, n + 5, n + 6, n + 7, n + 8,
			      n + 9, x,     x + 1, x + 2, x + 3, x + 4, x + 5, x + 6, x + 7 };
}

static void *keeps_many_registers(void *arg)
{
	struct many m = *(struct many *)arg;

	for (int round = 0; round < 100; round++) {
		(void)weft_fiber_yield(NULL);
		m = step(m);
	}
	*(struct many *)arg = m;
	return NULL;
}

TEST(many_registers_are_kept)
{
	struct many m[3];
	weft_fiber *f[3];

	for (size_t i = 0; i < 3; i++) {
		m[i] = many_of(i + 5);
		f[i] = weft_fiber_new(keeps_many_registers, NULL);
	}
	for (int round = 0; round <= 100; round++)
		for (size_t i = 0; i < 3; i++)
			(void)weft_fiber_resume(f[i], &m[i]);
	for (size_t i = 0; i < 3; i++) {
		struct many expected = many_of(i + 5);

		for (int round = 0; round < 100; round++)
			expected = step(expected);
		CHECK(weft_fiber_is_done(f[i]));
		CHECK(memcmp(&m[i], &expected, sizeof(expected)) == 0);
		weft_fiber_free(f[i]);
	}
}

static __thread int local = 1;

static void *uses_locals(void *arg)
{
	local++;
	errno = 33;
	(void)weft_fiber_yield(NULL);
	CHECK_EQ(errno, 44);
	CHECK_EQ(local, 12);
	return arg;
}

TEST(errno_and_thread_locals_are_the_threads)
{
	weft_fiber *f;

	local = 1;
	errno = 22;
	f = weft_fiber_new(uses_locals, NULL);
	CHECK_EQ(errno, 22);
	(void)weft_fiber_resume(f, NULL);
	CHECK_EQ(errno, 33);
	CHECK_EQ(local, 2);
	local += 10;
	errno = 44;
	(void)weft_fiber_resume(f, NULL);
	errno = 55;
	weft_fiber_free(f);
	CHECK_EQ(errno, 55);
}

static void *jumps(void *arg)
{
	jmp_buf back;
	volatile int n = 0;

	if (setjmp(back) < 5) {
		(void)weft_fiber_yield(arg);
		longjmp(back, ++n);
	}
	return (void *)(intptr_t)n;
}

TEST(jumps_within_a_fiber_are_as_ever)
{
	weft_fiber *f = weft_fiber_new(jumps, NULL);

	for (int i = 0; i < 5; i++)
		(void)weft_fiber_resume(f, NULL);
	CHECK_EQ((intptr_t)weft_fiber_resume(f, NULL), 5);
	CHECK(weft_fiber_is_done(f));
	weft_fiber_free(f);
}

static int nr_cleanups;

static void cleans(void *arg)
{
	nr_cleanups += (int)(intptr_t)arg;
}

static void *exits(void *arg)
{
	pthread_cleanup_push(cleans, (void *)1);
	(void)weft_fiber_yield(arg);
	pthread_exit("from a fiber");
	pthread_cleanup_pop(0);
	return NULL;
}

static void *exits_in_a_fiber(void *arg)
{
	weft_fiber *f = weft_fiber_new(exits, NULL);

	pthread_cleanup_push(cleans, (void *)10);
	(void)weft_fiber_resume(f, NULL);
	(void)weft_fiber_resume(f, NULL);
	pthread_cleanup_pop(0);
	return arg;
}

TEST(pthread_exit_in_a_fiber_unwinds_it_and_its_resumer)
{
	void *result = NULL;
	pthread_t t;

#ifdef __SANITIZE_THREAD__
	SKIP("ThreadSanitizer's pthread_exit() knows no fibers");
#endif
	nr_cleanups = 0;
	CHECK_EQ(pthread_create(&t, NULL, exits_in_a_fiber, NULL), 0);
	CHECK_EQ(pthread_join(t, &result), 0);
	CHECK_STR_EQ(result, "from a fiber");
	CHECK_EQ(nr_cleanups, 11);
}

static void *forks(void *arg)
{
	pid_t pid = fork();
	int status = -1;

	if (pid == 0) {
		(void)weft_fiber_yield((void *)1);
		_exit(9); /* not reached: the resumer ends the child */
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 7 << 8);
	return NULL;
}

TEST(a_fork_child_goes_on_in_the_fiber)
{
	weft_fiber *f = weft_fiber_new(forks, NULL);

	if (weft_fiber_resume(f, NULL))
		_exit(weft_fiber_is_done(f) ? 8 : 7);
	CHECK(weft_fiber_is_done(f));
	weft_fiber_free(f);
}
