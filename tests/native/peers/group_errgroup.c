// SPDX-License-Identifier: Apache-2.0
/*
 * Follows by behaviour the tests of errgroup (golang.org/x/sync). Where theirs keeps its first error, and its limit of 0 lets nobody
 * in, ours is as new after the wait, and 0 is no limit; to try is to start within a scope whose time is over.
 */
#include <weft/weft.h>

#include "native.h"
#include "tap.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>

static int returns(void *arg)
{
	return *(const int *)arg;
}

TEST(a_wait_returns_the_first_error_of_those_since_the_last_one)
{
	static const int rows[][3] = { { 0 }, { -EIO }, { -EIO, 0 }, { -EIO, 0, -EPERM }, { 7 } };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		weft_group g = { .name = "zero" };

		CHECK_EQ(weft_group_wait(&g), 0);
		for (int k = 0; k < 3; k++) {
			CHECK_EQ(weft_group_go(&g, returns, (void *)&rows[i][k]), 0);
			CHECK_EQ(weft_group_wait(&g), rows[i][k] < 0 ? rows[i][k] : 0);
		}
	}
}

/* As many as the limit allows, one after the other: the order in which they end is that in which they begin. */
TEST(the_first_error_stays_whatever_comes_later)
{
	static const int errors[] = { 0, -EIO, 0, -EPERM, -EIO };
	weft_group g = { .name = "each", .policy = WEFT_EACH, .limit = 1 };

	for (int i = 0; i < 50; i++) {
		for (int k = 0; k < 5; k++)
			CHECK_EQ(weft_group_go(&g, returns, (void *)&errors[k]), 0);
		CHECK_EQ(weft_group_wait(&g), -EIO);
	}
}

struct search {
	const char *what;
	char result[16];
};

static int searches(void *arg)
{
	struct search *s = arg;

	snprintf(s->result, sizeof(s->result), "%s!", s->what);
	return 0;
}

TEST(results_are_where_the_threads_have_put_them)
{
	struct search s[3] = { { "web", "" }, { "image", "" }, { "video", "" } };
	weft_group g = { .name = "search" };

	for (int i = 0; i < 3; i++)
		CHECK_EQ(weft_group_go(&g, searches, &s[i]), 0);
	CHECK_EQ(weft_group_wait(&g), 0);
	CHECK_STR_EQ(s[0].result, "web!");
	CHECK_STR_EQ(s[1].result, "image!");
	CHECK_STR_EQ(s[2].result, "video!");
}

static weft_chan *chan;
static atomic_int nr_run;

static int gives(void *arg)
{
	(void)arg;
	atomic_fetch_add(&nr_run, 1);
	return weft_chan_give(chan, WEFT_NEVER);
}

static int tries_to_go(weft_group *g)
{
	int error;
	WEFT_SCOPE(s, WEFT_NOW);

	error = weft_group_go(g, gives, NULL);
	return error;
}

static void take(int nr)
{
	while (nr--)
		CHECK_EQ(weft_chan_take(chan, WEFT_NEVER), 0);
}

TEST(a_full_group_starts_nobody_and_one_that_is_not_goes_on)
{
	weft_group g = { .name = "limit", .limit = 42 };

	chan = weft_chan_new(0, 0, "test");
	atomic_store(&nr_run, 0);
	for (int i = 0; i < 42; i++)
		CHECK_EQ(weft_group_go(&g, gives, NULL), 0);
	CHECK_EQ(tries_to_go(&g), -ETIMEDOUT);
	take(42);
	CHECK_EQ(weft_group_wait(&g), 0);
	CHECK_EQ(weft_group_go(&g, gives, NULL), 0);
	take(1);
	CHECK_EQ(weft_group_wait(&g), 0);
	/* Another limit. */
	g.limit = 1;
	CHECK_EQ(weft_group_go(&g, gives, NULL), 0);
	CHECK_EQ(tries_to_go(&g), -ETIMEDOUT);
	g.limit = 0;
	CHECK_EQ(weft_group_go(&g, gives, NULL), 0);
	take(2);
	CHECK_EQ(weft_group_wait(&g), 0);
	CHECK_EQ(atomic_load(&nr_run), 45);
	weft_chan_free(chan);
}

static atomic_int nr_active;

static int counts_the_active(void *arg)
{
	int error = atomic_fetch_add(&nr_active, 1) < *(int *)arg ? 0 : -E2BIG;

	weft_thread_yield();
	atomic_fetch_sub(&nr_active, 1);
	return error;
}

TEST(no_more_run_than_the_limit_allows)
{
	for (int limit = 1; limit < 12; limit += 5) {
		weft_group g = { .name = "limit", .limit = (unsigned)limit };

		for (int i = 0; i < 600; i++)
			if (!CHECK_EQ(weft_group_go(&g, counts_the_active, &limit), 0))
				break;
		CHECK_EQ(weft_group_wait(&g), 0);
	}
}

/* Threads of the group start others while the opener does: none is one too many. */
static int starts_another(void *arg)
{
	static int limit = 64;

	return weft_group_go((weft_group *)arg, counts_the_active, &limit) ? -EIO : 0;
}

TEST(threads_of_the_group_count_as_the_openers_do)
{
	weft_group g = { .name = "both", .limit = 64 };

	for (int i = 0; i < 30; i++)
		CHECK_EQ(weft_group_go(&g, starts_another, &g), 0);
	CHECK_EQ(weft_group_wait(&g), 0);
}

static int waits_and_says_why(void *arg)
{
	int why = weft_chan_take(chan, WEFT_NEVER);

	*(int *)arg = why;
	return why;
}

TEST(those_that_are_cancelled_hear_so_and_the_cause_is_returned)
{
	static const int doomed = -EDOM;

	for (int i = 0; i < 50; i++) {
		weft_group g = { .name = "doomed" };
		int why[4] = { 0 };

		chan = weft_chan_new(0, 0, "test");
		for (int k = 0; k < 4; k++)
			CHECK_EQ(weft_group_go(&g, waits_and_says_why, &why[k]), 0);
		CHECK_EQ(weft_group_go(&g, returns, (void *)&doomed), 0);
		CHECK_EQ(weft_group_wait(&g), -EDOM);
		for (int k = 0; k < 4; k++)
			CHECK_EQ(why[k], -ECANCELED);
		weft_chan_free(chan);
	}
}
