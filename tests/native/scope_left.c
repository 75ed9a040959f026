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

/* All of them lie in `inner`, or around it, or on both sides, and those around it are overwritten. */
TEST(whatever_is_overwritten_of_them_those_around_and_in_them_stay)
{
	uint64_t random = 1;

	for (int i = 0; i < 30000; i++) {
		const unsigned nr_around = (const unsigned[]){ 0, NR_ROOMS, NR_ROOMS / 2 }[i % 3];
		const unsigned nr = nr_around ? nr_around : NR_ROOMS;
		weft_scope outer, inner;

		weft_scope_open(&outer, WEFT_NEVER, "outer");
		leave_open(0, nr_around);
		weft_scope_open(&inner, WEFT_NEVER, "inner");
		leave_open(nr_around, NR_ROOMS);
		overwrite_some(&random, nr);
		weft_scope_cancel(&inner);
		CHECK_EQ(weft_scope_check(), -ECANCELED);
		CHECK_EQ(weft_scope_close(&inner), -ECANCELED);
		overwrite_some(&random, nr);
		check_that_outer_counts(&outer);
	}
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
	weft_scope_open(&room[0], WEFT_NEVER, "left");
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

TEST(a_check_counts_none_that_lies_below)
{
	weft_scope outer;

	weft_scope_open(&outer, WEFT_NEVER, "outer");
	if (!sigsetjmp(jump, 0))
		leave_two();
	check_that_outer_counts(&outer);
}

static void leave(int sig)
{
	weft_scope_open(&room[0], WEFT_NEVER, "left by a handler");
	siglongjmp(jump, sig);
}

/* A handler comes anywhere, in the midst of an open, too. */
TEST(a_handler_that_leaves_one_by_siglongjmp_costs_none_around_it)
{
	struct sigaction act = { .sa_handler = leave }, before;
	weft_scope outer;
	volatile int nr_left = 0;

	sigaction(SIGUSR1, &act, &before);
	weft_scope_open(&outer, WEFT_NEVER, "outer");
	if (sigsetjmp(jump, 1))
		nr_left++;
	overwrite_with(0x41);
	if (nr_left < 100) {
		weft_scope_open(&room[1], WEFT_NOW, "left");
		raise(SIGUSR1);
	}
	CHECK_EQ(nr_left, 100);
	sigaction(SIGUSR1, &before, NULL);
	check_that_outer_counts(&outer);
}
