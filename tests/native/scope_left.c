// SPDX-License-Identifier: Apache-2.0
/*
 * Scopes that were left open, as by longjmp(), where something else lies by now: those around them and those in them stay. The
 * room that they lie in is static, so that no compiler decides what overwrites it.
 */
#include "tap.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <weft/fiber.h>
#include <weft/group.h>
#include <weft/scope.h>
#include <weft/task.h>
#include <weft/weft.h>

#define NR_ROOMS 4

static weft_scope room[NR_ROOMS];

static void overwrite_with(int byte)
{
	memset(room, byte, sizeof(room));
}

static void check_that_outer_counts(weft_scope *outer)
{
	CHECK_EQ(weft_scope_check(), 0);
	weft_scope_cancel(outer);
	CHECK_EQ(weft_scope_check(), -ECANCELED);
	CHECK_EQ(weft_scope_close(outer), -ECANCELED);
	CHECK_EQ(weft_scope_check(), 0);
}

static int returns_0(void *arg)
{
	return 0;
}

static int sleeps(void *arg)
{
	return weft_sleep_until(weft_now() + WEFT_MS);
}

static const int bytes[] = { 0x00, 0x01, 0x41, 0x7f, 0xff };

TEST(those_around_them_stay_when_another_one_is_opened)
{
	for (size_t i = 0; i < sizeof(bytes) / sizeof(*bytes); i++) {
		weft_scope outer, s;

		weft_scope_open(&outer, WEFT_NEVER, "outer");
		weft_scope_open(&room[0], WEFT_NOW, "left");
		weft_scope_open(&room[1], WEFT_NOW, "left");
		overwrite_with(bytes[i]);
		weft_scope_open(&s, WEFT_NEVER, "s");
		CHECK_EQ(weft_scope_check(), 0);
		CHECK_EQ(weft_scope_close(&s), 0);
		check_that_outer_counts(&outer);
	}
}

TEST(those_around_them_stay_when_nothing_is_opened)
{
	for (size_t i = 0; i < sizeof(bytes) / sizeof(*bytes); i++) {
		weft_scope outer;

		weft_scope_open(&outer, WEFT_NEVER, "outer");
		weft_scope_open(&room[0], WEFT_NOW, "left");
		weft_scope_open(&room[1], WEFT_NOW, "left");
		overwrite_with(bytes[i]);
		check_that_outer_counts(&outer);
	}
}

TEST(one_around_them_closes_with_its_result)
{
	weft_scope outer;

	weft_scope_open(&outer, WEFT_NOW, "outer");
	CHECK_EQ(weft_scope_check(), -ETIMEDOUT);
	weft_scope_open(&room[0], WEFT_NOW, "left");
	overwrite_with(0x41);
	CHECK_EQ(weft_scope_close(&outer), -ETIMEDOUT);
	CHECK_EQ(weft_scope_check(), 0);
}

/* They lie between two by then. */
TEST(those_around_and_in_them_stay_when_they_are_overwritten_later)
{
	for (size_t i = 0; i < sizeof(bytes) / sizeof(*bytes); i++) {
		weft_scope outermost, outer, inner, innermost;

		weft_scope_open(&outermost, WEFT_NEVER, "outermost");
		weft_scope_open(&outer, WEFT_NEVER, "outer");
		weft_scope_open(&room[0], WEFT_NOW, "left");
		weft_scope_open(&room[1], WEFT_NOW, "left");
		weft_scope_open(&inner, WEFT_NEVER, "inner");
		weft_scope_open(&innermost, WEFT_NEVER, "innermost");
		overwrite_with(bytes[i]);
		CHECK_EQ(weft_scope_check(), 0);
		weft_scope_cancel(&inner);
		CHECK_EQ(weft_scope_check(), -ECANCELED);
		CHECK_EQ(weft_scope_close(&innermost), 0);
		CHECK_EQ(weft_scope_close(&inner), -ECANCELED);
		CHECK_EQ(weft_scope_check(), 0);
		weft_scope_cancel(&outer);
		CHECK_EQ(weft_scope_check(), -ECANCELED);
		CHECK_EQ(weft_scope_close(&outer), -ECANCELED);
		check_that_outer_counts(&outermost);
	}
}

TEST(a_deadline_of_theirs_ends_no_wait)
{
	weft_scope outer, inner;

	weft_scope_open(&outer, WEFT_NEVER, "outer");
	weft_scope_open(&room[0], WEFT_NOW, "left");
	weft_scope_open(&inner, WEFT_NEVER, "inner");
	overwrite_with(0x41);
	CHECK_EQ(weft_sleep_until(weft_now() + WEFT_MS), 0);
	CHECK_EQ(weft_scope_close(&inner), 0);
	CHECK_EQ(weft_scope_close(&outer), 0);
}

TEST(a_deadline_around_them_ends_a_wait)
{
	weft_scope outer, inner;

	weft_scope_open(&outer, weft_now() + 5 * WEFT_MS, "outer");
	weft_scope_open(&room[0], WEFT_NEVER, "left");
	weft_scope_open(&inner, WEFT_NEVER, "inner");
	overwrite_with(0x41);
	CHECK_EQ(weft_sleep_until(weft_now() + 100 * WEFT_SEC), -ETIMEDOUT);
	CHECK_EQ(weft_scope_close(&inner), 0);
	CHECK_EQ(weft_scope_close(&outer), -ETIMEDOUT);
}

/* Any words of the first nr of them, but that of what has happened to one, which others write, too. */
static void overwrite_some(uint64_t *random, unsigned nr)
{
	const size_t nr_words = sizeof(weft_scope) / sizeof(uint64_t);

	for (int i = 0; i < 3; i++) {
		uint64_t word, value;

		*random = *random * 6364136223846793005ull + 1442695040888963407ull;
		word = (*random >> 33) % (nr_words * nr);
		value = *random >> (*random >> 60) * 4;
		if (word % nr_words != 5)
			memcpy((char *)room + word * sizeof(value), &value, sizeof(value));
	}
}

static void leave_open(unsigned from, unsigned to)
{
	for (unsigned i = from; i < to; i++)
		weft_scope_open(&room[i], WEFT_NEVER, "left");
}

/* All of them lie in `inner`, or around it, or on both sides. */
TEST(whatever_is_overwritten_of_them_those_around_and_in_them_stay)
{
	uint64_t random = 1;

	for (int i = 0; i < 30000; i++) {
		const unsigned nr_around = (const unsigned[]){ 0, NR_ROOMS, NR_ROOMS / 2 }[i % 3];
		weft_scope outer, inner;

		weft_scope_open(&outer, WEFT_NEVER, "outer");
		leave_open(0, nr_around);
		weft_scope_open(&inner, WEFT_NEVER, "inner");
		leave_open(nr_around, NR_ROOMS);
		overwrite_some(&random, NR_ROOMS);
		weft_scope_cancel(&inner);
		CHECK_EQ(weft_scope_check(), -ECANCELED);
		CHECK_EQ(weft_scope_close(&inner), -ECANCELED);
		overwrite_some(&random, NR_ROOMS);
		check_that_outer_counts(&outer);
	}
}

TEST(those_between_two_that_are_overwritten_one_after_the_other_stay)
{
	weft_scope outer, s;

	weft_scope_open(&outer, WEFT_NEVER, "outer");
	weft_scope_open(&room[0], WEFT_NEVER, "left");
	weft_scope_open(&s, WEFT_NEVER, "s");
	overwrite_with(0x41);
	CHECK_EQ(weft_scope_check(), 0);
	weft_scope_open(&room[1], WEFT_NEVER, "left");
	overwrite_with(0x41);
	CHECK_EQ(weft_scope_check(), 0);
	weft_scope_cancel(&s);
	CHECK_EQ(weft_scope_check(), -ECANCELED);
	CHECK_EQ(weft_scope_close(&s), -ECANCELED);
	check_that_outer_counts(&outer);
}

/* Where two frames have it at the same place, or one in a loop. */
TEST(one_is_opened_again_where_it_was_left_with_others_in_it)
{
	for (int i = 0; i < NR_ROOMS; i++) {
		weft_group g = { .name = "group" };
		weft_scope outer;

		weft_scope_open(&outer, WEFT_NEVER, "outer");
		leave_open(0, NR_ROOMS);
		weft_scope_open(&room[i], WEFT_NEVER, "again");
		CHECK_EQ(weft_scope_check(), 0);
		CHECK_EQ(weft_group_go(&g, returns_0, NULL), 0);
		CHECK_EQ(weft_group_wait(&g), 0);
		weft_scope_cancel(&room[i]);
		CHECK_EQ(weft_scope_check(), -ECANCELED);
		CHECK_EQ(weft_scope_close(&room[i]), -ECANCELED);
		check_that_outer_counts(&outer);
	}
}

/* Further in than libweft has notes of. */
TEST(as_many_as_there_may_be_nest)
{
	weft_scope s[100], outer;

	for (int round = 0; round < 2; round++) {
		weft_scope_open(&outer, WEFT_NEVER, "outer");
		for (int i = 0; i < 100; i++)
			weft_scope_open(&s[i], i == 50 ? WEFT_NOW : WEFT_NEVER, "s");
		CHECK_EQ(weft_scope_close(&s[90]), 0);
		leave_open(0, NR_ROOMS);
		CHECK_EQ(weft_scope_check(), -ETIMEDOUT);
		CHECK_EQ(weft_scope_close(&s[51]), 0);
		CHECK_EQ(weft_scope_check(), -ETIMEDOUT);
		CHECK_EQ(weft_scope_close(&s[50]), -ETIMEDOUT);
		CHECK_EQ(weft_scope_check(), 0);
		leave_open(0, NR_ROOMS);
		overwrite_with(0x41);
		for (int i = 50; round && i-- > 0;)
			CHECK_EQ(weft_scope_close(&s[i]), 0);
		check_that_outer_counts(&outer);
	}
}

TEST(one_deep_inside_is_opened_again_where_it_was_left)
{
	weft_scope s[50], outer;

	weft_scope_open(&outer, WEFT_NEVER, "outer");
	for (int i = 0; i < 50; i++)
		weft_scope_open(&s[i], WEFT_NEVER, "s");
	weft_scope_open(&s[30], WEFT_NEVER, "again");
	CHECK_EQ(weft_scope_check(), 0);
	weft_scope_cancel(&s[29]);
	CHECK_EQ(weft_scope_check(), -ECANCELED);
	CHECK_EQ(weft_scope_close(&s[30]), 0);
	CHECK_EQ(weft_scope_close(&s[29]), -ECANCELED);
	check_that_outer_counts(&outer);
}

TEST(a_shield_among_them_keeps_no_deadline_out)
{
	weft_scope outer;

	weft_scope_open(&outer, weft_now() + 5 * WEFT_MS, "outer");
	weft_scope_shield(&room[0], WEFT_NEVER, "left");
	overwrite_with(0x41);
	CHECK_EQ(weft_sleep_until(weft_now() + 100 * WEFT_SEC), -ETIMEDOUT);
	CHECK_EQ(weft_scope_close(&outer), -ETIMEDOUT);

	weft_scope_open(&outer, weft_now() + 5 * WEFT_MS, "outer");
	weft_scope_shield(&room[0], WEFT_NEVER, "left");
	overwrite_with(0x41);
	while (!weft_scope_check())
		;
	CHECK_EQ(weft_scope_close(&outer), -ETIMEDOUT);
}

/* Its deadline is past, and was the earliest. */
TEST(what_is_begun_in_others_has_their_deadlines_and_not_that_of_one_that_was_left)
{
	weft_group g = { .name = "group", .limit = 1 };
	weft_scope outer, inner;

	weft_scope_open(&outer, WEFT_NEVER, "outer");
	weft_scope_open(&room[0], WEFT_NOW, "left");
	weft_scope_open(&inner, WEFT_NEVER, "inner");
	overwrite_with(0x41);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(weft_group_go(&g, sleeps, NULL), 0);
	CHECK_EQ(weft_group_wait(&g), 0);
	CHECK_EQ(weft_scope_close(&inner), 0);
	CHECK_EQ(weft_scope_close(&outer), 0);
}

static void *leaves_in_a_fiber(void *own)
{
	weft_scope_open(own, WEFT_NEVER, "own");
	weft_scope_open(&room[0], WEFT_NEVER, "left");
	weft_scope_open(&room[1], WEFT_NEVER, "left");
	overwrite_with(0x41);
	(void)weft_fiber_yield(NULL);
	CHECK_EQ(weft_scope_check(), 0);
	weft_scope_cancel(own);
	CHECK_EQ(weft_scope_check(), -ECANCELED);
	(void)weft_fiber_yield(NULL);
	CHECK_EQ(weft_scope_check(), -ECANCELED);
	CHECK_EQ(weft_scope_close(own), -ECANCELED);
	CHECK_EQ(weft_scope_check(), 0);
	return NULL;
}

TEST(a_fiber_goes_on_in_those_that_stay)
{
	weft_scope own, outer, s;
	weft_fiber *f = weft_fiber_new(leaves_in_a_fiber, NULL);

	weft_scope_open(&outer, WEFT_NEVER, "outer");
	(void)weft_fiber_resume(f, &own);
	weft_scope_open(&s, WEFT_NEVER, "s");
	(void)weft_fiber_resume(f, NULL);
	CHECK_EQ(weft_scope_check(), 0);
	weft_scope_open(&room[1], WEFT_NOW, "left");
	overwrite_with(0x41);
	(void)weft_fiber_resume(f, NULL);
	CHECK(weft_fiber_is_done(f));
	CHECK_EQ(weft_scope_check(), 0);
	CHECK_EQ(weft_scope_close(&s), 0);
	check_that_outer_counts(&outer);
	weft_fiber_free(f);
}

static void *leaves_its_outermost(void *own)
{
	weft_scope_open(&room[0], WEFT_NEVER, "left");
	weft_scope_open(own, WEFT_NEVER, "own");
	(void)weft_fiber_yield(NULL);
	CHECK_EQ(weft_scope_check(), 0);
	weft_scope_cancel(own);
	CHECK_EQ(weft_scope_check(), -ECANCELED);
	CHECK_EQ(weft_scope_close(own), -ECANCELED);
	return NULL;
}

TEST(a_fiber_goes_on_in_what_lay_in_one_that_it_has_left)
{
	weft_scope own, outer;
	weft_fiber *f = weft_fiber_new(leaves_its_outermost, NULL);

	weft_scope_open(&outer, WEFT_NEVER, "outer");
	(void)weft_fiber_resume(f, &own);
	overwrite_with(0x41);
	(void)weft_fiber_resume(f, NULL);
	CHECK(weft_fiber_is_done(f));
	check_that_outer_counts(&outer);
	weft_fiber_free(f);
}

static void *leaves_one(void *arg)
{
	weft_scope_open(&room[0], WEFT_NEVER, "left");
	(void)weft_fiber_yield(NULL);
	CHECK_EQ(weft_scope_check(), 0);
	return NULL;
}

TEST(one_that_a_fiber_has_left_is_opened_again_by_its_resumer)
{
	weft_scope outer;
	weft_fiber *f = weft_fiber_new(leaves_one, NULL);

	weft_scope_open(&outer, WEFT_NEVER, "outer");
	(void)weft_fiber_resume(f, NULL);
	weft_scope_open(&room[0], WEFT_NEVER, "again");
	(void)weft_fiber_resume(f, NULL);
	CHECK(weft_fiber_is_done(f));
	CHECK_EQ(weft_scope_close(&room[0]), 0);
	check_that_outer_counts(&outer);
	weft_fiber_free(f);
}

static int waits_in_a_group(void *arg)
{
	int error;

	while (!(error = weft_scope_check()))
		(void)weft_sleep_until(weft_now() + WEFT_MS);
	return error;
}

static void *opens_a_group(void *group)
{
	weft_scope own;

	weft_scope_open(&own, WEFT_NEVER, "own");
	CHECK_EQ(weft_group_go(group, waits_in_a_group, NULL), 0);
	(void)weft_fiber_yield(NULL);
	weft_group_cancel(group);
	CHECK_EQ(weft_group_wait(group), -ECANCELED);
	(void)weft_scope_close(&own);
	return NULL;
}

/* They were not when it was cancelled. */
TEST(threads_of_a_fibers_group_hear_of_the_scope_that_it_is_resumed_in)
{
	weft_group g = { .name = "group" };
	weft_fiber *f = weft_fiber_new(opens_a_group, NULL);
	weft_scope around;

	(void)weft_fiber_resume(f, &g);
	weft_scope_open(&around, WEFT_NEVER, "around");
	weft_scope_cancel(&around);
	(void)weft_fiber_resume(f, NULL);
	CHECK(weft_fiber_is_done(f));
	(void)weft_scope_close(&around);
	weft_fiber_free(f);
}

static sigjmp_buf jump;

static __attribute__((noinline)) void leave_two(void)
{
	weft_scope a, b;
	volatile char below[512] = { 0 };

	weft_scope_open(&a, WEFT_NOW, "left");
	weft_scope_open(&b, WEFT_NOW, "left");
	(void)below[0];
	siglongjmp(jump, 1);
}

static __attribute__((noinline)) void overwrite_the_stack(void)
{
	volatile uint64_t below[512];

	for (int i = 0; i < 512; i++)
		below[i] = 0x4141414141414141;
	(void)below[511];
}

static int waits_for_the_cancel(void *arg)
{
	return weft_sleep_until(WEFT_NEVER);
}

TEST(a_group_lies_in_those_that_stay)
{
	weft_group g = { .name = "group" };
	weft_scope outer;

	weft_scope_open(&outer, WEFT_NEVER, "outer");
	if (!sigsetjmp(jump, 0))
		leave_two();
	CHECK_EQ(weft_group_go(&g, waits_for_the_cancel, NULL), 0);
	overwrite_the_stack();
	weft_scope_cancel(&outer);
	CHECK_EQ(weft_group_wait(&g), -ECANCELED);
	CHECK_EQ(weft_scope_close(&outer), -ECANCELED);
}

static void waits_for_its_forker(void *error)
{
	*(int *)error = weft_sleep_until(weft_now() + 100 * WEFT_SEC);
}

/* The fork that nobody takes over is called by the join. */
TEST(a_task_lies_in_those_that_stay)
{
	weft_scope outer;
	int error = 0;
	weft_task t;

	weft_scope_open(&outer, WEFT_NEVER, "outer");
	if (!sigsetjmp(jump, 0))
		leave_two();
	weft_task_fork(&t, waits_for_its_forker, &error);
	overwrite_the_stack();
	weft_scope_cancel(&outer);
	weft_task_join(&t);
	CHECK_EQ(error, -ECANCELED);
	CHECK_EQ(weft_scope_close(&outer), -ECANCELED);
}
