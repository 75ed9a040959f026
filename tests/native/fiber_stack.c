// SPDX-License-Identifier: Apache-2.0
/* Stacks of fibers: sizes, many of them, signals and preemption on them. */
#include <weft/fiber.h>

#include "native.h"
#include "tap.h"

/* By a sanitizer, which has frames of its own. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define WATCHED true
#else
#define WATCHED false
#endif

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void *returns_it(void *arg)
{
	return arg;
}

static void *yields_for_ever(void *arg)
{
	while (arg != (void *)UINTPTR_MAX)
		arg = weft_fiber_yield(arg);
	return NULL;
}

/* --- where it is --- */

struct bounds {
	char *low, *high, *sp;
};

static struct bounds bounds_of(const weft_fiber *f)
{
	void *low, *high, *sp;

	weft_fiber_stack(f, &low, &high, &sp);
	return (struct bounds){ low, high, sp };
}

static void *looks(void *arg)
{
	struct bounds own = bounds_of(weft_fiber_self()), threads = bounds_of(NULL);
	char here;

	CHECK(own.low <= own.sp && own.sp <= own.high);
	CHECK(&here >= own.low && &here < own.high);
	CHECK(threads.low <= threads.sp && threads.sp < threads.high);
	CHECK((char *)arg > threads.sp && (char *)arg < threads.high);
	return weft_fiber_yield(&here);
}

TEST(a_collector_is_told_where_stacks_are_and_how_far_they_are_used)
{
	const struct weft_fiber_opts opts = { .size = sizeof(opts), .stack_bytes = 100000 };
	char here;
	weft_fiber *f = weft_fiber_new(looks, &opts);
	char *there = weft_fiber_resume(f, &here);
	struct bounds b = bounds_of(f);

	CHECK_EQ(b.high - b.low, 128 << 10);
	CHECK(there > b.sp && there < b.high && b.sp > b.low);
	b = bounds_of(NULL);
	CHECK(&here >= b.low && &here < b.high && b.sp > b.low && b.sp < b.high);
	(void)weft_fiber_resume(f, NULL);
	weft_fiber_free(f);
}

TEST(options_of_an_older_program_are_known_as_far_as_it_knew_them)
{
	const struct weft_fiber_opts opts = { .size = offsetof(struct weft_fiber_opts, stack_bytes),
					      .stack_bytes = 1 };
	weft_fiber *f = weft_fiber_new(returns_it, &opts);
	struct bounds b = bounds_of(f);

	CHECK_EQ(b.high - b.low, WEFT_FIBER_STACK);
	weft_fiber_free(f);
}

TEST(a_stack_that_is_too_large_is_none)
{
	const struct weft_fiber_opts opts = { .size = sizeof(opts), .stack_bytes = SIZE_MAX };
	const struct weft_fiber_opts tiny = { .size = sizeof(opts), .stack_bytes = 1 };
	weft_fiber *f;

	CHECK(!weft_fiber_new(returns_it, &opts));
	f = weft_fiber_new(returns_it, &tiny);
	CHECK_EQ(bounds_of(f).high - bounds_of(f).low, WEFT_FIBER_MIN_STACK);
	CHECK_STR_EQ(weft_fiber_resume(f, "small"), "small");
	weft_fiber_free(f);
}

/* --- depth and number --- */

static size_t goes_down(size_t depth)
{
	volatile char use[1000];

	use[0] = (char)depth;
	use[999] = 1;
	return depth ? goes_down(depth - 1) + (size_t)use[999] : 0;
}

static void *goes_deep(void *arg)
{
	return (void *)goes_down((size_t)arg);
}

TEST(a_recursion_is_as_deep_as_its_stack)
{
	const struct weft_fiber_opts opts = { .size = sizeof(opts), .stack_bytes = 8 << 20 };
	weft_fiber *f = weft_fiber_new(goes_deep, &opts);

	CHECK_EQ((size_t)weft_fiber_resume(f, (void *)6000), 6000);
	weft_fiber_free(f);
}

static bool has_guard_regions(void)
{
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	bool has = madvise(page, 4096, 102) == 0;

	(void)munmap(page, 4096);
	return has;
}

#define NR_MANY 100000

TEST(a_hundred_thousand_are_suspended_at_a_time)
{
	const struct weft_fiber_opts opts = { .size = sizeof(opts), .stack_bytes = 16 << 10 };
	weft_fiber **all;
	size_t nr = 0;
	uintptr_t sum = 0;

	if (!has_guard_regions())
		SKIP("a kernel without guard regions: vm.max_map_count allows 32,000");
	if (WATCHED || is_native_run())
		SKIP("only attached, where nothing is watched: it takes a second");
	all = calloc(NR_MANY, sizeof(*all));
	for (; nr < NR_MANY; nr++) {
		all[nr] = weft_fiber_new(yields_for_ever, &opts);
		if (!all[nr])
			break;
		sum += (uintptr_t)weft_fiber_resume(all[nr], (void *)nr);
	}
	CHECK_EQ(nr, NR_MANY);
	for (size_t i = 0; i < nr; i++)
		sum -= (uintptr_t)weft_fiber_resume(all[i], (void *)i);
	CHECK_EQ(sum, 0);
	for (size_t i = 0; i < nr; i++)
		weft_fiber_free(all[i]);
	free(all);
}

static size_t nr_mapped(void)
{
	char line[4096];
	size_t nr = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	if (f && fgets(line, sizeof(line), f))
		nr = strtoul(line, NULL, 10);
	if (f)
		(void)fclose(f);
	return nr;
}

TEST(what_many_have_used_is_given_back)
{
	weft_fiber *all[500];
	size_t before = nr_mapped();

	for (int round = 0; round < 6; round++) {
		for (size_t i = 0; i < 500; i++) {
			all[i] = weft_fiber_new(yields_for_ever, NULL);
			(void)weft_fiber_resume(all[i], NULL);
		}
		/* In another order than they were made. */
		for (size_t i = 0; i < 500; i++)
			weft_fiber_free(all[i * 7 % 500]);
	}
	/* In pages. Each round has used 130 MiB of addresses, and a thread keeps 8. */
	if (!WATCHED)
		CHECK(nr_mapped() < before + 8192);
}

/* --- signals --- */

static volatile sig_atomic_t nr_signals;
static char *volatile handler_at;
static weft_fiber *volatile handler_self;

static void on_signal(int sig)
{
	char here;

	nr_signals++;
	handler_at = &here;
	handler_self = weft_fiber_self();
}

static void *raises(void *arg)
{
	(void)raise(SIGUSR1);
	CHECK(handler_self == weft_fiber_self());
	(void)weft_fiber_yield(NULL);
	(void)raise(SIGUSR1);
	return arg;
}

TEST(a_handler_runs_on_the_fibers_stack_or_on_the_alternate_one)
{
	static char alternate[64 << 10];
	const stack_t on = { .ss_sp = alternate, .ss_size = sizeof(alternate) };
	const stack_t off = { .ss_flags = SS_DISABLE };
	struct sigaction sa = { .sa_handler = on_signal };
	weft_fiber *f = weft_fiber_new(raises, NULL);
	struct bounds b = bounds_of(f);

	nr_signals = 0;
	sigaction(SIGUSR1, &sa, NULL);
	(void)weft_fiber_resume(f, NULL);
	CHECK_EQ(nr_signals, 1);
	if (!WATCHED)
		CHECK(handler_at > b.low && handler_at < b.high);
	sa.sa_flags = SA_ONSTACK;
	sigaction(SIGUSR1, &sa, NULL);
	CHECK_EQ(sigaltstack(&on, NULL), 0);
	(void)weft_fiber_resume(f, NULL);
	CHECK_EQ(nr_signals, 2);
	if (!WATCHED)
		CHECK(handler_at > alternate && handler_at < alternate + sizeof(alternate));
	CHECK_EQ(sigaltstack(&off, NULL), 0);
	weft_fiber_free(f);
}

static volatile bool is_over;

static void *sends_signals(void *to)
{
	while (!is_over)
		(void)pthread_kill(*(pthread_t *)to, SIGUSR1);
	return NULL;
}

/* They come at whatever instruction of the switch there is. */
TEST(signals_come_while_it_switches)
{
	struct sigaction sa = { .sa_handler = on_signal };
	pthread_t self = pthread_self(), t;
	weft_fiber *f = weft_fiber_new(yields_for_ever, NULL);

#ifdef __SANITIZE_THREAD__
	SKIP("ThreadSanitizer keeps handlers back");
#endif
	nr_signals = 0;
	is_over = false;
	sigaction(SIGUSR1, &sa, NULL);
	CHECK_EQ(pthread_create(&t, NULL, sends_signals, &self), 0);
	for (uintptr_t i = 0; nr_signals < 2000; i++)
		if ((uintptr_t)weft_fiber_resume(f, (void *)i) != i) {
			CHECK(!"the value was lost");
			break;
		}
	is_over = true;
	CHECK_EQ(pthread_join(t, NULL), 0);
	weft_fiber_free(f);
}

/* --- preemption --- */

#define NR_THREADS 8
#define NR_FIBERS 5

static void *computes(void *arg)
{
	uintptr_t seed = (uintptr_t)arg, x = seed;
	double d = (double)seed;

	for (int i = 0; i < 20000; i++) {
		x = x * 6364136223846793005u + seed;
		d = d * 0.5 + (double)seed;
		if (i % 16 == 0 && weft_fiber_yield((void *)x) != (void *)seed)
			return NULL;
	}
	return (void *)(x + (uintptr_t)d);
}

static uintptr_t computed(uintptr_t seed)
{
	uintptr_t x = seed;
	double d = (double)seed;

	for (int i = 0; i < 20000; i++) {
		x = x * 6364136223846793005u + seed;
		d = d * 0.5 + (double)seed;
	}
	return x + (uintptr_t)d;
}

static void *runs_fibers(void *arg)
{
	weft_fiber *f[NR_FIBERS];
	uintptr_t result[NR_FIBERS] = { 0 }, base = (uintptr_t)arg * 100;
	size_t nr_done = 0;

	for (size_t i = 0; i < NR_FIBERS; i++)
		f[i] = weft_fiber_new(computes, NULL);
	while (nr_done < NR_FIBERS)
		for (size_t i = 0; i < NR_FIBERS; i++) {
			if (weft_fiber_is_done(f[i]))
				continue;
			result[i] = (uintptr_t)weft_fiber_resume(f[i], (void *)(base + i));
			nr_done += weft_fiber_is_done(f[i]);
		}
	for (size_t i = 0; i < NR_FIBERS; i++) {
		CHECK_EQ(result[i], computed(base + i));
		weft_fiber_free(f[i]);
	}
	return NULL;
}

/* With slices of 100 us, which tests/native/meson.build asks for, and more threads than workers. */
TEST(threads_are_preempted_in_fibers)
{
	pthread_t t[NR_THREADS];

	for (size_t i = 0; i < NR_THREADS; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, runs_fibers, (void *)(i + 1)), 0);
	for (size_t i = 0; i < NR_THREADS; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
}
