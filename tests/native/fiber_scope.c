// SPDX-License-Identifier: Apache-2.0
/* Scopes and fibers: a resumer's reach in, a fiber's own are in force only while it runs; and tasks run in their forker's. */
#include <weft/event.h>
#include <weft/fiber.h>
#include <weft/scope.h>
#include <weft/task.h>
#include <weft/weft.h>

#include "tap.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>

static void *checks(void *arg)
{
	while (arg != (void *)1)
		arg = weft_fiber_yield((void *)(intptr_t)weft_scope_check());
	return NULL;
}

static int check_in(weft_fiber *f)
{
	return (int)(intptr_t)weft_fiber_resume(f, NULL);
}

TEST(a_scope_of_the_resumer_reaches_in)
{
	weft_fiber *f = weft_fiber_new(checks, NULL);
	weft_scope s;

	CHECK_EQ(check_in(f), 0);
	weft_scope_open(&s, WEFT_NOW, "over");
	CHECK_EQ(check_in(f), -ETIMEDOUT);
	(void)weft_scope_close(&s);
	CHECK_EQ(check_in(f), 0);
	weft_fiber_free(f);
}

static void *yields_in_a_scope(void *arg)
{
	weft_scope outer, inner;

	weft_scope_open(&outer, weft_now() + 100 * WEFT_SEC, "outer");
	weft_scope_open(&inner, *(weft_time *)arg, "inner");
	arg = weft_fiber_yield((void *)(intptr_t)weft_scope_check());
	arg = weft_fiber_yield((void *)(intptr_t)weft_scope_check());
	(void)weft_scope_close(&inner);
	arg = weft_fiber_yield((void *)(intptr_t)weft_scope_check());
	(void)weft_scope_close(&outer);
	return (void *)(intptr_t)weft_scope_check();
}

/* A generator that yields inside of a deadline: it is not the consumer's. */
TEST(a_scope_of_a_fiber_is_in_force_only_while_it_runs)
{
	weft_time past = WEFT_NOW;
	weft_fiber *f = weft_fiber_new(yields_in_a_scope, NULL);

	CHECK_EQ((intptr_t)weft_fiber_resume(f, &past), -ETIMEDOUT);
	CHECK_EQ(weft_scope_check(), 0);
	CHECK_EQ(check_in(f), -ETIMEDOUT);
	CHECK_EQ(weft_scope_check(), 0);
	CHECK_EQ(check_in(f), 0);
	CHECK_EQ(check_in(f), 0);
	CHECK(weft_fiber_is_done(f));
	weft_fiber_free(f);
}

/* The scope around it is another one each time, and where the first one was lies something else. */
static void resume_in(weft_fiber *f, weft_time deadline, int expected)
{
	weft_scope s;

	weft_scope_open(&s, deadline, "around");
	CHECK_EQ(check_in(f), expected);
	CHECK_EQ(weft_scope_check(), deadline == WEFT_NOW ? -ETIMEDOUT : 0);
	(void)weft_scope_close(&s);
}

TEST(what_it_has_opened_lies_in_the_scopes_of_whoever_resumes_it)
{
	weft_time never = WEFT_NEVER;
	weft_fiber *f = weft_fiber_new(yields_in_a_scope, NULL);
	weft_scope first;

	weft_scope_open(&first, WEFT_NEVER, "first");
	CHECK_EQ((intptr_t)weft_fiber_resume(f, &never), 0);
	(void)weft_scope_close(&first);
	first = (weft_scope){ .deadline = 1, .opaque = { 1, 2, 3, 4, 5, 6 } };
	resume_in(f, WEFT_NOW, -ETIMEDOUT);
	resume_in(f, weft_now() + 100 * WEFT_SEC, 0);
	CHECK_EQ(check_in(f), 0);
	CHECK(weft_fiber_is_done(f));
	CHECK_EQ(weft_scope_check(), 0);
	weft_fiber_free(f);
}

static weft_fiber *other;

static void *transfers_in_a_scope(void *arg)
{
	weft_scope s;
	intptr_t there;

	weft_scope_open(&s, WEFT_NOW, "left by a transfer");
	there = (intptr_t)weft_fiber_transfer(other, weft_fiber_self());
	CHECK_EQ(weft_scope_check(), -ETIMEDOUT);
	(void)weft_scope_close(&s);
	return (void *)there;
}

static void *checks_and_transfers_back(void *to)
{
	return weft_fiber_transfer(to, (void *)(intptr_t)weft_scope_check());
}

TEST(a_transfer_leaves_its_scopes_behind)
{
	weft_fiber *f = weft_fiber_new(transfers_in_a_scope, NULL);
	weft_scope own;

	other = weft_fiber_new(checks_and_transfers_back, NULL);
	weft_scope_open(&own, weft_now() + 100 * WEFT_SEC, "own");
	CHECK_EQ((intptr_t)weft_fiber_transfer(f, NULL), 0);
	CHECK(weft_fiber_is_done(f));
	CHECK_EQ(weft_scope_check(), 0);
	CHECK_EQ(weft_scope_close(&own), 0);
	weft_fiber_free(f);
	weft_fiber_free(other);
}

static void *is_transferred_to(void *arg)
{
	return arg;
}

/* Goes on because the other one has ended. */
static void *transfers_once(void *arg)
{
	weft_scope s;
	int here;

	weft_scope_open(&s, WEFT_NOW, "left by a transfer");
	(void)weft_fiber_transfer(other, arg);
	here = weft_scope_check();
	(void)weft_scope_close(&s);
	return (void *)(intptr_t)here;
}

TEST(scopes_are_in_force_again_when_what_was_transferred_to_ends)
{
	weft_fiber *f = weft_fiber_new(transfers_once, NULL);

	other = weft_fiber_new(is_transferred_to, NULL);
	CHECK_EQ(check_in(f), -ETIMEDOUT);
	CHECK(weft_fiber_is_done(f) && weft_fiber_is_done(other));
	CHECK_EQ(weft_scope_check(), 0);
	weft_fiber_free(f);
	weft_fiber_free(other);
}

static void check_at_end(void *arg)
{
	*(int *)arg = weft_scope_check();
}

static void *exits_in_a_scope(void *arg)
{
	weft_scope s;

	weft_scope_open(&s, WEFT_NOW, "of the fiber");
	pthread_exit(arg);
}

static void *ends_in_a_fiber(void *arg)
{
	pthread_cleanup_push(check_at_end, arg);
	(void)weft_fiber_resume(weft_fiber_new(exits_in_a_scope, NULL), NULL);
	pthread_cleanup_pop(0);
	return NULL;
}

TEST(a_thread_that_ends_in_a_fiber_is_out_of_its_scopes_where_it_unwinds_the_resumer)
{
	int at_end = 1;
	pthread_t t;

#ifdef __SANITIZE_THREAD__
	SKIP("ThreadSanitizer's pthread_exit() knows no fibers");
#endif
	CHECK_EQ(pthread_create(&t, NULL, ends_in_a_fiber, &at_end), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
	CHECK_EQ(at_end, 0);
}

static void *leaves_a_scope_open(void *arg)
{
	static weft_scope s;

	weft_scope_open(&s, WEFT_NOW, "left open");
	return arg;
}

TEST(what_an_ended_fiber_has_left_open_is_closed)
{
	weft_fiber *f = weft_fiber_new(leaves_a_scope_open, NULL);

	(void)weft_fiber_resume(f, NULL);
	CHECK_EQ(weft_scope_check(), 0);
	weft_fiber_free(f);
}

static void *waits(void *arg)
{
	return (void *)(intptr_t)weft_event_wait(arg, WEFT_NEVER);
}

TEST(a_wait_in_a_fiber_ends_by_the_resumers_deadline)
{
	weft_fiber *f = weft_fiber_new(waits, NULL);
	weft_event never = { { 0 } };
	weft_scope s;

	weft_scope_open(&s, weft_now() + 3 * WEFT_MS, "short");
	CHECK_EQ((intptr_t)weft_fiber_resume(f, &never), -ETIMEDOUT);
	(void)weft_scope_close(&s);
	weft_fiber_free(f);
}

/* --- tasks --- */

struct wait {
	pthread_t by;
	weft_event *until, began;
	int result;
};

static void waits_in_a_task(void *arg)
{
	struct wait *w = arg;

	w->by = pthread_self();
	weft_event_set(&w->began);
	w->result = weft_event_wait(w->until, WEFT_NEVER);
}

TEST(a_task_that_was_taken_over_is_in_its_forkers_scopes)
{
	weft_event never = { { 0 } };
	struct wait w = { .until = &never };
	weft_scope s, shield;
	weft_task t;

	weft_scope_open(&s, weft_now() + 20 * WEFT_MS, "short");
	weft_task_fork(&t, waits_in_a_task, &w);
	/* So that it is not called in the join; if nobody takes it, it is, and that is as good. */
	weft_scope_shield(&shield, weft_now() + 500 * WEFT_MS, "time to be taken");
	(void)weft_event_wait(&w.began, WEFT_NEVER);
	(void)weft_scope_close(&shield);
	weft_task_join(&t);
	CHECK_EQ(w.result, -ETIMEDOUT);
	(void)weft_scope_close(&s);
	CHECK_EQ(weft_scope_check(), 0);
}
