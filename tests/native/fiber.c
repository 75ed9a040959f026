// SPDX-License-Identifier: Apache-2.0
/* Fibers: values, order and transfers. */
#include <weft/fiber.h>

#include "fibers.h"
#include "tap.h"

#include <stdint.h>

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
