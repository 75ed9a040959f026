// SPDX-License-Identifier: Apache-2.0
/* Events: all that wait go on, nobody comes too late, and handlers may set them. */
#include <weft/weft.h>

#include "native.h"
#include "tap.h"
#include "threads.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

TEST(a_zeroed_event_is_clear)
{
	weft_event e = { 0 };

	CHECK(!weft_event_is_set(&e));
	CHECK_EQ(weft_event_wait(&e, WEFT_NOW), -ETIMEDOUT);
	weft_event_set(&e);
	CHECK(weft_event_is_set(&e));
	CHECK_EQ(weft_event_wait(&e, WEFT_NEVER), 0);
	CHECK_EQ(weft_event_wait(&e, WEFT_NOW), 0);
	CHECK_EQ(weft_event_wait(&e, weft_now() - WEFT_SEC), 0);
	weft_event_set(&e);
	weft_event_clear(&e);
	weft_event_clear(&e);
	CHECK(!weft_event_is_set(&e));
	CHECK_EQ(weft_event_wait(&e, WEFT_NOW), -ETIMEDOUT);
}

TEST(a_wait_ends_at_its_time_and_not_before)
{
	weft_event e = { 0 };
	weft_time until = weft_now() + 3 * WEFT_MS;

	errno = 77;
	CHECK_EQ(weft_event_wait(&e, until), -ETIMEDOUT);
	CHECK(weft_now() >= until);
	CHECK_EQ(errno, 77);
}

static weft_event ping, pong;
static int turns;

static void *plays(void *arg)
{
	for (int i = 0; i < 1000; i++) {
		CHECK_EQ(weft_event_wait(&ping, WEFT_NEVER), 0);
		weft_event_clear(&ping);
		turns++;
		weft_event_set(&pong);
	}
	return arg;
}

TEST(what_was_done_before_it_was_set_is_seen)
{
	pthread_t t = spawn(plays, NULL);

	for (int i = 0; i < 1000; i++) {
		weft_event_set(&ping);
		CHECK_EQ(weft_event_wait(&pong, WEFT_NEVER), 0);
		weft_event_clear(&pong);
		CHECK_EQ(turns, i + 1);
	}
	join(t);
}

static void *waits(void *arg)
{
	CHECK_EQ(weft_event_wait(arg, WEFT_NEVER), 0);
	return NULL;
}

TEST(a_set_event_lets_all_go_on_whenever_they_come)
{
	weft_event e = { 0 };
	pthread_t t[64];

	for (int i = 0; i < 64; i++) {
		t[i] = spawn(waits, &e);
		if (i == 40)
			weft_event_set(&e);
	}
	for (int i = 0; i < 64; i++)
		join(t[i]);
}

static void *sets(void *arg)
{
	weft_event_set(arg);
	return NULL;
}

/* The event is on the stack of a function that returns as soon as it is set, and the memory is used again. */
static __attribute__((noinline)) pthread_t waits_here(void)
{
	volatile char before[256];
	weft_event e = { 0 };
	pthread_t t = spawn(sets, &e);

	CHECK_EQ(weft_event_wait(&e, WEFT_NEVER), 0);
	memset((void *)&e, 0x5a, sizeof(e));
	memset((char *)before, 0x5a, sizeof(before));
	return t;
}

static __attribute__((noinline)) void checks_stack(void)
{
	volatile char used[512];

	memset((char *)used, 0xa5, sizeof(used));
	sched_yield();
	for (size_t i = 0; i < sizeof(used); i++)
		if (used[i] != (char)0xa5) {
			CHECK(!"somebody wrote to what the event was");
			return;
		}
}

TEST(an_event_may_be_gone_when_the_wait_has_returned)
{
	for (int i = 0; i < 300; i++) {
		pthread_t t = waits_here();

		checks_stack();
		join(t);
	}
}

static weft_event from_handler;
static _Atomic int nr_handled;

static void on_signal(int sig)
{
	if (sig == SIGUSR2)
		weft_event_set(&from_handler);
	nr_handled++;
}

static pthread_t waiter;
static weft_event is_waiting;

static void *waits_for_handler(void *arg)
{
	weft_event_set(&is_waiting);
	CHECK_EQ(weft_event_wait(&from_handler, WEFT_NEVER), 0);
	return arg;
}

static void take_signals(int flags)
{
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = flags };

	sigaction(SIGUSR1, &sa, NULL);
	sigaction(SIGUSR2, &sa, NULL);
	nr_handled = 0;
}

TEST(a_handler_runs_during_a_wait_and_the_wait_goes_on)
{
	for (int flags = 0; flags <= SA_RESTART; flags += SA_RESTART) {
		weft_event_clear(&from_handler);
		weft_event_clear(&is_waiting);
		take_signals(flags);
		waiter = spawn(waits_for_handler, NULL);
		weft_event_wait(&is_waiting, WEFT_NEVER);
		for (int i = 1; i <= 10; i++) {
			pthread_kill(waiter, SIGUSR1);
			while (nr_handled < i)
				sched_yield();
		}
		CHECK(!weft_event_is_set(&from_handler));
		pthread_kill(waiter, SIGUSR2); /* sets it, in the thread that waits for it */
		join(waiter);
		CHECK_EQ(nr_handled, 11);
	}
}

static weft_event stop;

/* Waits with deadlines, so that the list is locked now and then when the signal comes. */
static void *comes_and_goes(void *arg)
{
	while (!weft_event_is_set(&stop))
		(void)weft_event_wait(&from_handler, weft_now() + 20 * WEFT_US);
	return arg;
}

TEST(a_handler_may_set_what_the_thread_is_about_to_wait_for)
{
	pthread_t t;

	weft_event_clear(&from_handler);
	weft_event_clear(&stop);
	take_signals(0);
	t = spawn(comes_and_goes, NULL);
	for (int i = 1; i <= 60; i++) {
		pthread_kill(t, SIGUSR2);
		while (nr_handled < i)
			sched_yield();
		weft_event_clear(&from_handler);
	}
	weft_event_set(&stop);
	join(t);
}

static weft_event contended;
static _Atomic int nr_sets;

static void *sets_and_clears(void *arg)
{
	for (int i = 0; i < 2000; i++) {
		weft_event_set(&contended);
		nr_sets++;
		weft_event_clear(&contended);
	}
	return arg;
}

static void *waits_often(void *arg)
{
	while (!weft_event_is_set(&stop)) {
		int ret = weft_event_wait(&contended, weft_now() + 50 * WEFT_US);

		CHECK(ret == 0 || ret == -ETIMEDOUT);
	}
	return arg;
}

TEST(setters_clearers_and_waiters_with_deadlines_leave_it_in_order)
{
	pthread_t setters[2], waiters[4];

	weft_event_clear(&stop);
	for (int i = 0; i < 4; i++)
		waiters[i] = spawn(waits_often, NULL);
	for (int i = 0; i < 2; i++)
		setters[i] = spawn(sets_and_clears, NULL);
	for (int i = 0; i < 2; i++)
		join(setters[i]);
	weft_event_set(&stop);
	for (int i = 0; i < 4; i++)
		join(waiters[i]);
	CHECK_EQ(nr_sets, 4000);
	CHECK(!weft_event_is_set(&contended));
	weft_event_set(&contended);
	CHECK_EQ(weft_event_wait(&contended, WEFT_NEVER), 0);
}
