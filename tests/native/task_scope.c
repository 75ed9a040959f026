// SPDX-License-Identifier: Apache-2.0
/* Tasks and scopes: a task that another thread has taken over is in the scopes in which it was forked, wherever it waits. */
#include <weft/event.h>
#include <weft/group.h>
#include <weft/scope.h>
#include <weft/task.h>
#include <weft/weft.h>

#include "native.h"
#include "tap.h"

#include <errno.h>
#include <sched.h>
#include <unistd.h>

struct patience {
	weft_event began, other, again, never;
	int errors[2];
};

static void waits_twice(void *arg)
{
	struct patience *p = arg;

	weft_event_set(&p->began);
	p->errors[0] = weft_event_wait(&p->other, WEFT_NEVER);
	weft_event_set(&p->again);
	p->errors[1] = weft_event_wait(&p->never, weft_now() + 10 * WEFT_SEC);
}

static void check_cancel(bool is_inner)
{
	struct patience p = { 0 };
	weft_scope s, inner;
	weft_task t;

	weft_scope_open(&s, WEFT_NEVER, "s");
	if (is_inner)
		weft_scope_open(&inner, WEFT_NEVER, "inner");
	weft_task_fork(&t, waits_twice, &p);
	CHECK_EQ(weft_event_wait(&p.began, WEFT_NEVER), 0);
	weft_event_set(&p.other);
	/* Usually it waits again by now. */
	for (int i = 0; i < 200; i++)
		sched_yield();
	weft_scope_cancel(&s);
	weft_task_join(&t);
	CHECK_EQ(p.errors[1], -ECANCELED);
	if (is_inner)
		weft_scope_close(&inner);
	CHECK_EQ(p.errors[0] == 0 || p.errors[0] == -ECANCELED, true);
	weft_scope_close(&s);
}

TEST(a_cancel_reaches_a_stolen_task_that_waits_again)
{
	if (!has_others())
		SKIP("one worker");
	for (int i = 0; i < 5; i++)
		check_cancel(i & 1);
}

static void forks_one_that_waits(void *arg)
{
	struct patience *p = arg;
	weft_task t;

	weft_task_fork(&t, waits_twice, p);
	(void)weft_event_wait(&p->began, weft_now() + 10 * WEFT_SEC);
	weft_task_join(&t);
}

static int forks_in_group(void *arg)
{
	forks_one_that_waits(arg);
	return 0;
}

TEST(a_cancel_of_a_group_reaches_the_tasks_of_its_threads)
{
	struct patience p = { 0 };
	weft_group g = { .name = "g" };

	if (!has_others())
		SKIP("one worker");
	CHECK_EQ(weft_group_go(&g, forks_in_group, &p), 0);
	CHECK_EQ(weft_event_wait(&p.began, WEFT_NEVER), 0);
	weft_event_set(&p.other);
	for (int i = 0; i < 200; i++)
		sched_yield();
	weft_group_cancel(&g);
	(void)weft_group_wait(&g);
	CHECK_EQ(p.errors[1], -ECANCELED);
}

/* The scope that is cancelled first is out of the task's sight. */
static void check_shield(bool is_inner)
{
	struct patience p = { 0 };
	weft_scope s, shield, inner;
	weft_task t;

	weft_scope_open(&s, WEFT_NEVER, "s");
	weft_scope_shield(&shield, WEFT_NEVER, "shield");
	if (is_inner)
		weft_scope_open(&inner, WEFT_NEVER, "inner");
	weft_task_fork(&t, waits_twice, &p);
	CHECK_EQ(weft_event_wait(&p.began, WEFT_NEVER), 0);
	weft_scope_cancel(&s);
	for (int i = 0; i < 200; i++)
		sched_yield();
	weft_event_set(&p.other);
	CHECK_EQ(weft_event_wait(&p.again, WEFT_NEVER), 0);
	weft_scope_cancel(is_inner ? &inner : &shield);
	weft_task_join(&t);
	CHECK_EQ(p.errors[0], 0);
	CHECK_EQ(p.errors[1], -ECANCELED);
	if (is_inner)
		(void)weft_scope_close(&inner);
	(void)weft_scope_close(&shield);
	CHECK_EQ(weft_scope_close(&s), 0);
}

TEST(a_shield_keeps_a_cancel_from_a_stolen_task)
{
	if (!has_others())
		SKIP("one worker");
	for (int i = 0; i < 20; i++)
		check_shield(i & 1);
}
