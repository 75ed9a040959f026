// SPDX-License-Identifier: Apache-2.0
/* Fibers: values, order, the rules of resume, yield and transfer, and what they have of their own. */
#include <weft/fiber.h>

#include "dies.h"
#include "tap.h"

#include <errno.h>
#include <fenv.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static weft_fiber *named(const char *name, void *(*fn)(void *))
{
	const struct weft_fiber_opts opts = { .size = sizeof(opts), .name = name };

	return weft_fiber_new(fn, &opts);
}

static void *returns_it(void *arg)
{
	return arg;
}

/* --- values and order --- */

static void *adds(void *first)
{
	intptr_t sum = (intptr_t)first;

	for (;;) {
		intptr_t next = (intptr_t)weft_fiber_yield((void *)sum);

		if (!next)
			return (void *)(sum + 1000);
		sum += next;
	}
}

TEST(values_go_both_ways)
{
	weft_fiber *f = weft_fiber_new(adds, NULL);

	CHECK_EQ((intptr_t)weft_fiber_resume(f, (void *)1), 1);
	CHECK_EQ((intptr_t)weft_fiber_resume(f, (void *)10), 11);
	CHECK_EQ((intptr_t)weft_fiber_resume(f, (void *)100), 111);
	CHECK(!weft_fiber_is_done(f));
	CHECK_EQ((intptr_t)weft_fiber_resume(f, NULL), 1111);
	CHECK(weft_fiber_is_done(f));
	weft_fiber_free(f);
}

static weft_fiber *seen_self;

static void *notes_self(void *arg)
{
	seen_self = weft_fiber_self();
	return arg;
}

TEST(self_is_the_one_that_runs)
{
	weft_fiber *f = weft_fiber_new(notes_self, NULL);

	CHECK(!weft_fiber_self());
	(void)weft_fiber_resume(f, NULL);
	CHECK(seen_self == f);
	CHECK(!weft_fiber_self());
	weft_fiber_free(f);
}

static void *resumes_twice(void *arg)
{
	weft_fiber *inner = arg;
	intptr_t a = (intptr_t)weft_fiber_resume(inner, (void *)5);
	intptr_t b = (intptr_t)weft_fiber_yield((void *)a);

	return (void *)(intptr_t)weft_fiber_resume(inner, (void *)b);
}

TEST(a_fiber_resumes_fibers)
{
	weft_fiber *inner = weft_fiber_new(adds, NULL),
		   *outer = weft_fiber_new(resumes_twice, NULL);

	CHECK_EQ((intptr_t)weft_fiber_resume(outer, inner), 5);
	CHECK_EQ((intptr_t)weft_fiber_resume(outer, (void *)7), 12);
	CHECK(weft_fiber_is_done(outer) && !weft_fiber_is_done(inner));
	/* The one that waits now may be resumed by another than before. */
	CHECK_EQ((intptr_t)weft_fiber_resume(inner, (void *)8), 20);
	weft_fiber_free(outer);
	weft_fiber_free(inner);
}

#define NR_IN_CHAIN 50

static void *counts_down(void *arg)
{
	intptr_t n = (intptr_t)arg;
	weft_fiber *next;

	if (!n)
		return NULL;
	next = weft_fiber_new(counts_down, NULL);
	n += (intptr_t)weft_fiber_resume(next, (void *)(n - 1));
	CHECK(weft_fiber_is_done(next));
	weft_fiber_free(next);
	return (void *)n;
}

TEST(each_fiber_makes_the_next)
{
	weft_fiber *f = weft_fiber_new(counts_down, NULL);

	CHECK_EQ((intptr_t)weft_fiber_resume(f, (void *)NR_IN_CHAIN),
		 NR_IN_CHAIN * (NR_IN_CHAIN + 1) / 2);
	weft_fiber_free(f);
}

/* --- transfer --- */

static weft_fiber *ping, *pong;
static char order[64];
static size_t nr_order;

static void note(char c)
{
	order[nr_order++] = c;
	order[nr_order] = '\0';
}

static void *pings(void *arg)
{
	for (int i = 0; i < 3; i++) {
		note('a');
		arg = weft_fiber_transfer(pong, arg);
	}
	return weft_fiber_transfer(NULL, "over");
}

static void *pongs(void *arg)
{
	while (nr_order < sizeof(order) - 2) {
		note('b');
		arg = weft_fiber_transfer(ping, arg);
	}
	return NULL;
}

TEST(fibers_transfer_to_one_another)
{
	ping = weft_fiber_new(pings, NULL);
	pong = weft_fiber_new(pongs, NULL);
	nr_order = 0;
	CHECK_STR_EQ(weft_fiber_transfer(ping, NULL), "over");
	CHECK_STR_EQ(order, "ababab");
	CHECK(!weft_fiber_is_done(ping) && !weft_fiber_self());
	weft_fiber_free(ping);
	weft_fiber_free(pong);
}

TEST(a_transferred_fiber_ends_on_the_threads_own_stack)
{
	weft_fiber *f = weft_fiber_new(returns_it, NULL);

	CHECK_STR_EQ(weft_fiber_transfer(f, "end"), "end");
	CHECK(weft_fiber_is_done(f));
	weft_fiber_free(f);
}

TEST(a_transfer_to_oneself_returns_the_value)
{
	CHECK_EQ((intptr_t)weft_fiber_transfer(NULL, (void *)3), 3);
}

static weft_fiber *other;

/* Left by a transfer while it was resumed; other ends, and so it goes on. */
static void *transfers_once(void *arg)
{
	const char *got = weft_fiber_transfer(other, arg);

	return weft_fiber_yield((void *)got);
}

TEST(a_transferred_fiber_ends_in_what_the_own_stack_has_resumed)
{
	weft_fiber *f = weft_fiber_new(transfers_once, NULL);

	other = weft_fiber_new(returns_it, NULL);
	CHECK_STR_EQ(weft_fiber_resume(f, "through"), "through");
	CHECK(weft_fiber_is_done(other) && !weft_fiber_is_done(f));
	CHECK_STR_EQ(weft_fiber_resume(f, "last"), "last");
	CHECK(weft_fiber_is_done(f));
	weft_fiber_free(f);
	weft_fiber_free(other);
}

/* --- rules --- */

static void *yields_once(void *arg)
{
	return weft_fiber_yield(arg);
}

static void *transfers_home(void *arg)
{
	return weft_fiber_transfer(NULL, arg);
}

static void resume_a_done_one(void)
{
	weft_fiber *f = named("worn", returns_it);

	(void)weft_fiber_resume(f, NULL);
	(void)weft_fiber_resume(f, NULL);
}

static void *resumes_self(void *arg)
{
	return weft_fiber_resume(weft_fiber_self(), arg);
}

static void resume_the_running_one(void)
{
	(void)weft_fiber_resume(named("snake", resumes_self), NULL);
}

static void *resumes(void *f)
{
	return weft_fiber_resume(f, weft_fiber_self());
}

static void *resumes_arg(void *resumer)
{
	return weft_fiber_resume(resumer, NULL);
}

static void resume_the_resumer(void)
{
	weft_fiber *inner = named("inner", resumes_arg);

	(void)weft_fiber_resume(named("outer", resumes), inner);
}

static void resume_a_transferred_one(void)
{
	weft_fiber *f = named("gone", transfers_home);

	(void)weft_fiber_transfer(f, NULL);
	(void)weft_fiber_resume(f, NULL);
}

static void transfer_to_a_yielded_one(void)
{
	weft_fiber *f = named("rests", yields_once);

	(void)weft_fiber_resume(f, NULL);
	(void)weft_fiber_transfer(f, NULL);
}

static void *transfers(void *to)
{
	return weft_fiber_transfer(to, NULL);
}

static void *resumes_with_self(void *f)
{
	return weft_fiber_resume(f, weft_fiber_self());
}

static void transfer_to_a_resumer(void)
{
	weft_fiber *inner = named("inner", transfers);

	(void)weft_fiber_resume(named("outer", resumes_with_self), inner);
}

static void transfer_to_the_own_stack_that_resumes(void)
{
	(void)weft_fiber_resume(named("inner", transfers_home), NULL);
}

static void transfer_to_a_done_one(void)
{
	weft_fiber *f = named("worn", returns_it);

	(void)weft_fiber_resume(f, NULL);
	(void)weft_fiber_transfer(f, NULL);
}

static void yield_on_the_own_stack(void)
{
	(void)weft_fiber_yield(NULL);
}

static void yield_of_a_transferred_one(void)
{
	(void)weft_fiber_transfer(named("lonely", yields_once), NULL);
}

static void *resumes_there(void *f)
{
	(void)pthread_setname_np(pthread_self(), "thief");
	return weft_fiber_resume(f, NULL);
}

static void *transfers_there(void *f)
{
	(void)weft_fiber_new(returns_it, NULL);
	return weft_fiber_transfer(f, NULL);
}

static void on_another_thread(void *(*fn)(void *))
{
	pthread_t t;

	(void)pthread_setname_np(pthread_self(), "owner");
	(void)pthread_create(&t, NULL, fn, named("mine", returns_it));
	(void)pthread_join(t, NULL);
}

static void *transfers_without_any(void *f)
{
	return weft_fiber_transfer(f, NULL);
}

static void transfer_without_any(void)
{
	on_another_thread(transfers_without_any);
}

static void resume_another_threads(void)
{
	on_another_thread(resumes_there);
}

static void transfer_to_another_threads(void)
{
	on_another_thread(transfers_there);
}

static void *makes_one(void *arg)
{
	*(weft_fiber **)arg = named("orphan", returns_it);
	return NULL;
}

static weft_fiber *orphan(void)
{
	weft_fiber *f = NULL;
	pthread_t t;

	(void)pthread_create(&t, NULL, makes_one, &f);
	(void)pthread_join(t, NULL);
	return f;
}

static void resume_an_orphan(void)
{
	(void)weft_fiber_resume(orphan(), NULL);
}

static void *frees(void *f)
{
	weft_fiber_free(f);
	return NULL;
}

static void *frees_self(void *arg)
{
	weft_fiber_free(weft_fiber_self());
	return arg;
}

static void free_the_running_one(void)
{
	(void)weft_fiber_resume(named("saws", frees_self), NULL);
}

static void free_a_resumer(void)
{
	weft_fiber *inner = named("inner", frees);

	(void)weft_fiber_resume(named("outer", resumes_with_self), inner);
}

static weft_fiber *left;

static void *frees_left(void *arg)
{
	weft_fiber_free(left);
	return arg;
}

static void free_one_that_is_waited_for(void)
{
	left = named("left", transfers);
	(void)weft_fiber_resume(left, named("frees", frees_left));
}

TEST(mistakes_end_the_process_and_name_both)
{
	CHECK_DIES(resume_a_done_one, "thread ", " cannot resume fiber \"worn\": it is done");
	CHECK_DIES(resume_the_running_one, "fiber \"snake\" of thread ",
		   " cannot resume fiber \"snake\": it is the one that runs");
	CHECK_DIES(resume_the_resumer, "fiber \"inner\" of thread ",
		   "cannot resume fiber \"outer\": it has resumed a fiber itself");
	CHECK_DIES(resume_a_transferred_one,
		   "cannot resume fiber \"gone\": it was left by a transfer");
	CHECK_DIES(transfer_to_a_yielded_one, "cannot transfer to fiber \"rests\": it has yielded");
	CHECK_DIES(transfer_to_a_resumer, "fiber \"inner\" of thread ",
		   "cannot transfer to fiber \"outer\": it has resumed a fiber");
	CHECK_DIES(transfer_to_the_own_stack_that_resumes, "fiber \"inner\" of thread ",
		   "cannot transfer to its thread's own stack: it has resumed a fiber");
	CHECK_DIES(transfer_to_a_done_one, "cannot transfer to fiber \"worn\": it is done");
	CHECK_DIES(yield_on_the_own_stack, "cannot yield: it runs on no fiber");
	CHECK_DIES(yield_of_a_transferred_one, "fiber \"lonely\" of thread ",
		   "cannot yield: ", "nobody has resumed it");
}

TEST(mistakes_between_threads_end_the_process)
{
	CHECK_DIES(resume_another_threads,
		   "\"thief\" cannot resume fiber \"mine\": it is one of thread ", "\"owner\"");
	CHECK_DIES(transfer_to_another_threads,
		   "cannot transfer to fiber \"mine\": it is one of thread ", "\"owner\"");
	CHECK_DIES(transfer_without_any, "cannot transfer: no fiber is this thread's");
	CHECK_DIES(resume_an_orphan,
		   "cannot resume fiber \"orphan\": it is one of a thread that has ended");
}

TEST(what_runs_or_is_waited_for_is_not_freed)
{
	CHECK_DIES(free_the_running_one, "cannot free fiber \"saws\": it runs");
	CHECK_DIES(free_a_resumer, "cannot free fiber \"outer\": it has resumed a fiber");
	CHECK_DIES(free_one_that_is_waited_for,
		   "cannot free fiber \"left\": a fiber has resumed it");
}

/* --- freeing --- */

static int nr_after;

static void *counts_after_yield(void *arg)
{
	(void)weft_fiber_yield(arg);
	nr_after++;
	return arg;
}

TEST(of_a_suspended_fiber_that_is_freed_nothing_runs_any_more)
{
	weft_fiber *f = weft_fiber_new(counts_after_yield, NULL);

	nr_after = 0;
	(void)weft_fiber_resume(f, NULL);
	weft_fiber_free(f);
	weft_fiber_free(NULL);
	f = weft_fiber_new(counts_after_yield, NULL);
	weft_fiber_free(f);
	CHECK_EQ(nr_after, 0);
}

TEST(another_thread_may_free_it_and_one_of_a_thread_that_has_ended)
{
	weft_fiber *f = weft_fiber_new(adds, NULL);
	pthread_t t;

	(void)weft_fiber_resume(f, NULL);
	CHECK_EQ(pthread_create(&t, NULL, frees, f), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
	weft_fiber_free(orphan());
}

/* --- what it has of its own --- */

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
