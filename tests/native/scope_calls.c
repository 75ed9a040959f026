// SPDX-License-Identifier: Apache-2.0
/*
 * Every call that a signal can end, against every way in which a scope ends one. The table is the kernel's of signal(7),
 * "Interruption of system calls"; what no signal ends is in scope_rules.c.
 */
#include "native.h"
#include "scope_call_ends.h"
#include "scope_call_table.h"
#include "tap.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <weft/scope.h>
#include <weft/weft.h>

static void say(const struct call *c, const char *how, long ret, long wanted)
{
	if (ret != wanted)
		tap_note("%s, %s: %ld instead of %ld", c->name, how, ret, wanted);
	CHECK(ret == wanted);
}

/* Where a kernel lacks it, or a limit of the user's has it. */
static bool is_made(const struct call *c)
{
	if (c->make == call_mq_receive || c->make == call_mq_send)
		return empty_queue >= 0 && full_queue >= 0;
	return true;
}

#define EACH_CALL(c)                                                                               \
	for (const struct call *c = calls; c < calls + NR_CALLS; c++)                              \
		if (is_made(c))

TEST(a_call_that_would_wait_ends_at_once_when_the_deadline_has_passed)
{
	IF_REACHED();
	EACH_CALL(c)
	{
		weft_scope s;

		weft_scope_open(&s, WEFT_NOW, c->name);
		say(c, "deadline before", c->make(), -ETIMEDOUT);
		say(c, "its close", weft_scope_close(&s), -ETIMEDOUT);
	}
}

TEST(a_call_that_waits_ends_when_the_deadline_comes)
{
	IF_REACHED();
	EACH_CALL(c)
	{
		weft_time until = weft_now() + SOON;
		weft_scope s;

		weft_scope_open(&s, until, c->name);
		say(c, "deadline during", c->make(), -ETIMEDOUT);
		CHECK(weft_now() >= until);
		say(c, "its close", weft_scope_close(&s), -ETIMEDOUT);
	}
}

TEST(every_call_ends_not_the_first_alone)
{
	IF_REACHED();
	EACH_CALL(c)
	{
		weft_scope s;

		if (c->is_once)
			continue;
		weft_scope_open(&s, weft_now() + WEFT_MS, c->name);
		for (int i = 0; i < 4; i++)
			say(c, "again", c->make(), -ETIMEDOUT);
		weft_scope_close(&s);
	}
}

TEST(a_call_waits_for_its_own_time_limit_where_that_is_shorter)
{
	struct pollfd p = { -1, 0, 0 };
	const struct timespec ms = { 0, 1000000 };
	sigset_t s2 = usr2();
	weft_scope s;

	IF_REACHED();
	weft_scope_open(&s, weft_now() + 60 * WEFT_SEC, "long");
	CHECK_EQ(poll(&p, 1, 1), 0);
	CHECK_EQ(nanosleep(&ms, NULL), 0);
	CHECK_EQ(ret_of(sigtimedwait(&s2, NULL, &ms)), -EAGAIN);
	CHECK_EQ(weft_scope_close(&s), 0);
}

static void *cancel(void *scope)
{
	weft_scope_cancel(scope);
	return NULL;
}

static void *cancel_later(void *scope)
{
	weft_sleep_until(weft_now() + WEFT_MS);
	weft_scope_cancel(scope);
	return NULL;
}

static void check_cancel(const struct call *c, void *(*canceller)(void *), const char *how)
{
	weft_scope s;
	pthread_t t;

	weft_scope_open(&s, WEFT_NEVER, c->name);
	pthread_create(&t, NULL, canceller, &s);
	say(c, how, c->make(), c->is_once ? -ETIMEDOUT : -ECANCELED);
	if (!c->is_once)
		say(c, how, c->make(), -ECANCELED);
	say(c, "its close", weft_scope_close(&s), -ECANCELED);
	pthread_join(t, NULL);
}

TEST(a_cancelled_call_ends_whenever_that_comes)
{
	IF_REACHED();
	EACH_CALL(c)
	{
		check_cancel(c, cancel, "cancelled about now");
		check_cancel(c, cancel_later, "cancelled in a wait");
	}
}

TEST(a_shield_keeps_the_outer_scope_out)
{
	IF_REACHED();
	EACH_CALL(c)
	{
		weft_time until = weft_now() + SOON;
		weft_scope s, shield;

		weft_scope_open(&s, WEFT_NEVER, c->name);
		weft_scope_cancel(&s);
		weft_scope_shield(&shield, until, "shield");
		say(c, "in a shield", c->make(), -ETIMEDOUT);
		CHECK(weft_now() >= until);
		say(c, "the shield's close", weft_scope_close(&shield), -ETIMEDOUT);
		say(c, "behind the shield", c->make(), c->is_once ? -ETIMEDOUT : -ECANCELED);
		say(c, "its close", weft_scope_close(&s), -ECANCELED);
	}
}

static int nr_handled;

static void count(int sig)
{
	__atomic_fetch_add(&nr_handled, 1, __ATOMIC_SEQ_CST);
}

struct sender {
	pthread_t to;
	bool is_over;
};

/* As often as it takes: the thread may not be in the call yet. */
static void *send_signals(void *arg)
{
	struct sender *s = arg;

	while (!__atomic_load_n(&s->is_over, __ATOMIC_SEQ_CST)) {
		pthread_kill(s->to, SIGUSR1);
		weft_sleep_until(weft_now() + WEFT_MS);
	}
	return NULL;
}

/* Some are never restarted: then it says EINTR, and the program would make it again. */
TEST(a_handler_with_SA_RESTART_runs_and_the_call_still_ends)
{
	struct sigaction act = { .sa_handler = count, .sa_flags = SA_RESTART };

	IF_REACHED();
	sigaction(SIGUSR1, &act, NULL);
	EACH_CALL(c)
	{
		struct sender sender = { .to = pthread_self() };
		weft_scope s;
		pthread_t t;
		long ret;

		nr_handled = 0;
		weft_scope_open(&s, weft_now() + 2 * SOON, c->name);
		pthread_create(&t, NULL, send_signals, &sender);
		do
			ret = c->make();
		while (ret == -EINTR || (c->is_once && ret == 0));
		say(c, "with a handler", ret, -ETIMEDOUT);
		say(c, "its close", weft_scope_close(&s), -ETIMEDOUT);
		__atomic_store_n(&sender.is_over, true, __ATOMIC_SEQ_CST);
		pthread_join(t, NULL);
		if (!nr_handled)
			tap_note("%s: no handler ran", c->name);
		CHECK(nr_handled > 0);
	}
}

/* False: the thread had no processor for so long that the first wait has been ended by both. */
static bool waits_twice(const struct call *c, weft_time soon)
{
	weft_scope outer, s;
	bool is_too_late;

	weft_scope_open(&outer, weft_now() + soon, "outer");
	weft_scope_open(&s, WEFT_NOW, c->name);
	say(c, "first", c->make(), -ETIMEDOUT);
	is_too_late = weft_now() >= outer.deadline;
	if (!is_too_late) {
		/* The inner one has done it; only the outer one can now. */
		say(c, "second", c->make(), -ETIMEDOUT);
		CHECK(weft_now() >= outer.deadline);
		say(c, "close", weft_scope_close(&s), -ETIMEDOUT);
		say(c, "outer close", weft_scope_close(&outer), -ETIMEDOUT);
	} else {
		(void)weft_scope_close(&s);
		(void)weft_scope_close(&outer);
	}
	return !is_too_late;
}

TEST(a_wait_that_a_scope_ends_once_waits_the_second_time)
{
	IF_REACHED();
	EACH_CALL(c)
	{
		weft_time soon = 4 * SOON;

		while (c->is_once && !waits_twice(c, soon))
			soon *= 2;
	}
}
