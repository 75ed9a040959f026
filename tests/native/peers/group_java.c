// SPDX-License-Identifier: Apache-2.0
/*
 * Follows by behaviour the tests of OpenJDK's StructuredTaskScope: StructuredTaskScopeTest, StressCancellation. There a scope is
 * used once, and only its owner forks; ours is as new after the wait, and its threads may start others.
 */
#include <weft/weft.h>

#include "native.h"
#include "tap.h"
#include "threads.h"

#include <errno.h>
#include <stdatomic.h>

#define DAY (86400 * WEFT_SEC)

static atomic_int nr_begun, nr_ended;

static int sleeps_a_day(void *arg)
{
	int error;

	(void)arg;
	atomic_fetch_add(&nr_begun, 1);
	error = weft_sleep_until(weft_now() + DAY);
	atomic_fetch_add(&nr_ended, 1);
	return error;
}

static int succeeds(void *arg)
{
	(void)arg;
	return 0;
}

TEST(a_cancel_ends_those_that_run_and_those_that_begin)
{
	for (int before = 0; before < 16; before += 3)
		for (int after = 0; after < 16; after += 3) {
			weft_group g = { .name = "stress", .policy = WEFT_ANY };
			int error = 0;

			atomic_store(&nr_begun, 0);
			atomic_store(&nr_ended, 0);
			for (int i = 0; i < before; i++)
				CHECK_EQ(weft_group_go(&g, sleeps_a_day, NULL), 0);
			CHECK_EQ(weft_group_go(&g, succeeds, NULL), 0);
			/* Once it is over none is started any more. */
			for (int i = 0; i < after; i++) {
				int now = weft_group_go(&g, sleeps_a_day, NULL);

				CHECK(now == -ECANCELED || (now == 0 && error == 0));
				error = now;
			}
			CHECK_EQ(weft_group_wait(&g), 0);
			CHECK_EQ(atomic_load(&nr_ended), atomic_load(&nr_begun));
		}
}

static int notes_itself(void *arg)
{
	*(pthread_t *)arg = pthread_self();
	return 0;
}

TEST(each_runs_in_a_thread_that_is_not_the_openers)
{
	pthread_t t[50] = { 0 };
	weft_group g = { .name = "threads" };

	for (int i = 0; i < 50; i++)
		CHECK_EQ(weft_group_go(&g, notes_itself, &t[i]), 0);
	CHECK_EQ(weft_group_wait(&g), 0);
	for (int i = 0; i < 50; i++)
		CHECK(t[i] && !pthread_equal(t[i], pthread_self()));
}

TEST(a_group_whose_time_is_over_starts_none_and_says_so)
{
	weft_group g = { .name = "late", .deadline = WEFT_NOW };

	atomic_store(&nr_begun, 0);
	CHECK_EQ(weft_group_go(&g, sleeps_a_day, NULL), -ETIMEDOUT);
	CHECK_EQ(weft_group_wait(&g), 0);
	CHECK_EQ(atomic_load(&nr_begun), 0);
	g.deadline = weft_now() + 20 * WEFT_MS;
	CHECK_EQ(weft_group_go(&g, sleeps_a_day, NULL), 0);
	CHECK_EQ(weft_group_wait(&g), -ETIMEDOUT);
	/* As new. */
	g.deadline = weft_now() + DAY;
	CHECK_EQ(weft_group_go(&g, succeeds, NULL), 0);
	CHECK_EQ(weft_group_wait(&g), 0);
}

static void *cancels(void *scope)
{
	weft_scope_cancel((weft_scope *)scope);
	return NULL;
}

/* Before the wait, or while it waits. */
TEST(whoever_waits_and_is_cancelled_takes_the_threads_along)
{
	for (int i = 0; i < 40; i++) {
		weft_group g = { .name = "interrupted" };
		pthread_t t = 0;
		WEFT_SCOPE(s, WEFT_NEVER);

		atomic_store(&nr_begun, 0);
		atomic_store(&nr_ended, 0);
		for (int k = 0; k < 3; k++)
			CHECK_EQ(weft_group_go(&g, sleeps_a_day, NULL), 0);
		if (i % 2)
			weft_scope_cancel(&s);
		else
			t = spawn(cancels, &s);
		CHECK_EQ(weft_group_wait(&g), -ECANCELED);
		CHECK_EQ(atomic_load(&nr_ended), atomic_load(&nr_begun));
		CHECK_EQ(weft_group_go(&g, succeeds, NULL), -ECANCELED);
		CHECK_EQ(weft_scope_close(&s), -ECANCELED);
		if (t) /* a scope would end that, too */
			join(t);
		CHECK_EQ(weft_group_go(&g, succeeds, NULL), 0);
		CHECK_EQ(weft_group_wait(&g), 0);
	}
}

struct inner {
	int result, is_outer_over;
};

/* A group in a thread of a group: its end is its own. */
static int opens_an_inner_one(void *arg)
{
	struct inner *in = arg;
	weft_group g = { .name = "inner", .policy = WEFT_ANY };

	for (int i = 0; i < 3; i++)
		CHECK_EQ(weft_group_go(&g, sleeps_a_day, NULL), 0);
	CHECK_EQ(weft_group_go(&g, succeeds, NULL), 0);
	in->result = weft_group_wait(&g);
	in->is_outer_over = weft_scope_check();
	return 0;
}

TEST(an_inner_group_that_is_cancelled_leaves_the_outer_one_alone)
{
	struct inner in[4];
	weft_group g = { .name = "outer" };

	for (int i = 0; i < 4; i++) {
		in[i] = (struct inner){ -1, -1 };
		CHECK_EQ(weft_group_go(&g, opens_an_inner_one, &in[i]), 0);
	}
	CHECK_EQ(weft_group_wait(&g), 0);
	for (int i = 0; i < 4; i++) {
		CHECK_EQ(in[i].result, 0);
		CHECK_EQ(in[i].is_outer_over, 0);
	}
}

static int nests(void *arg)
{
	long depth = (long)arg;
	weft_group g = { .name = "nested" };

	if (!depth)
		return sleeps_a_day(NULL);
	for (int i = 0; i < 2; i++)
		if (weft_group_go(&g, nests, (void *)(depth - 1)))
			break;
	return weft_group_wait(&g);
}

TEST(a_deadline_at_the_top_ends_all_below)
{
	for (int i = 0; i < 3; i++) {
		weft_group g = { .name = "top", .deadline = weft_now() + i * 10 * WEFT_MS };

		atomic_store(&nr_begun, 0);
		atomic_store(&nr_ended, 0);
		if (weft_group_go(&g, nests, (void *)5L) == 0)
			CHECK_EQ(weft_group_wait(&g), -ETIMEDOUT);
		CHECK_EQ(atomic_load(&nr_ended), atomic_load(&nr_begun));
	}
}

static int fails_and_may_have_been_told(void *arg)
{
	(void)arg;
	return -EIO;
}

/* Of many that fail at once, one is the first, and no cancelled one is taken for it. */
TEST(the_cause_is_never_the_consequence)
{
	for (int i = 0; i < 40; i++) {
		weft_group g = { .name = "cause" };

		for (int k = 0; k < 6; k++)
			(void)weft_group_go(&g, k % 2 ? fails_and_may_have_been_told : sleeps_a_day,
					    NULL);
		CHECK_EQ(weft_group_wait(&g), -EIO);
	}
}
