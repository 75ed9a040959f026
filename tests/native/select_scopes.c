// SPDX-License-Identifier: Apache-2.0
/* Scopes end waits for events and channels, and selects of all kinds, each time; what needs no wait is done. */
#include <weft/weft.h>

#include "native.h"
#include "tap.h"
#include "threads.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <unistd.h>

static weft_event never;
static weft_chan *full, *empty;
static int fds[2];

static int waits_for_event(void)
{
	return weft_event_wait(&never, WEFT_NEVER);
}

static int sends(void)
{
	int n = 1;

	return weft_chan_send(full, &n, WEFT_NEVER);
}

static int receives(void)
{
	int n;

	return weft_chan_recv(empty, &n, WEFT_NEVER);
}

static int selects(void)
{
	int n;
	struct weft_op ops[] = { WEFT_ON(&never), WEFT_RECV(empty, &n) };

	return weft_select(ops, 2, WEFT_NEVER);
}

static int polls(void)
{
	struct weft_op ops[] = { WEFT_ON(&never), WEFT_FD(fds[0], POLLIN) };

	return weft_select(ops, 2, WEFT_NEVER);
}

static int (*const waits[])(void) = { waits_for_event, sends, receives, selects, polls };
#define NR_WAITS ((int)(sizeof(waits) / sizeof(waits[0])))

static void begin(void)
{
	int n = 0;

	if (full)
		return;
	full = weft_chan_new(sizeof(int), 1, "full");
	empty = weft_chan_new(sizeof(int), 1, "empty");
	CHECK_EQ(weft_chan_send(full, &n, WEFT_NEVER), 0);
	CHECK_EQ(pipe(fds), 0);
}

TEST(a_deadline_around_a_wait_ends_it_each_time)
{
	begin();
	for (int i = 0; i < NR_WAITS; i++) {
		weft_scope s;

		weft_scope_open(&s, weft_now() + 2 * WEFT_MS, "brief");
		CHECK_EQ(waits[i](), -ETIMEDOUT);
		CHECK_EQ(waits[i](), -ETIMEDOUT);
		CHECK(weft_now() >= s.deadline);
		CHECK_EQ(weft_scope_close(&s), -ETIMEDOUT);
	}
}

static weft_scope *scope;
static weft_event is_open;
static int result, again, closed;

static void *waits_in_scope(void *arg)
{
	weft_scope s;
	int i = (int)(long)arg;

	weft_scope_open(&s, WEFT_NEVER, "cancelled");
	scope = &s;
	weft_event_set(&is_open);
	result = waits[i]();
	again = waits[i]();
	closed = weft_scope_close(&s);
	return NULL;
}

TEST(a_cancelled_scope_ends_it_each_time)
{
	begin();
	for (int i = 0; i < 3 * NR_WAITS; i++) {
		pthread_t t;

		weft_event_clear(&is_open);
		t = spawn(waits_in_scope, (void *)(long)(i % NR_WAITS));
		CHECK_EQ(weft_event_wait(&is_open, WEFT_NEVER), 0);
		for (int turns = 0; turns < i; turns++)
			sched_yield();
		weft_scope_cancel(scope);
		join(t);
		CHECK_EQ(result, -ECANCELED);
		CHECK_EQ(again, -ECANCELED);
		CHECK_EQ(closed, -ECANCELED);
	}
}

TEST(what_needs_no_wait_is_done_in_a_scope_that_is_over)
{
	weft_chan *ch = weft_chan_new(sizeof(int), 1, "room");
	weft_event set = { 0 };
	weft_scope s;
	int n = 4, out = 0;
	struct weft_op op = WEFT_RECV(ch, &out);

	weft_event_set(&set);
	weft_scope_open(&s, WEFT_NOW, "over");
	CHECK_EQ(weft_event_wait(&set, WEFT_NEVER), 0);
	CHECK_EQ(weft_chan_send(ch, &n, WEFT_NEVER), 0);
	CHECK_EQ(weft_select(&op, 1, WEFT_NEVER), 0);
	CHECK_EQ(out, 4);
	CHECK_EQ(weft_chan_send(ch, &n, WEFT_NEVER), 0);
	CHECK_EQ(weft_chan_recv(ch, &out, WEFT_NEVER), 0);
	CHECK_EQ(weft_scope_close(&s), 0);
	weft_chan_free(ch);
}

TEST(a_deadline_of_the_wait_itself_is_none_of_the_scopes)
{
	weft_scope s;

	weft_scope_open(&s, weft_now() + 100 * WEFT_SEC, "long");
	CHECK_EQ(weft_event_wait(&never, weft_now() + WEFT_MS), -ETIMEDOUT);
	CHECK_EQ(weft_scope_close(&s), 0);
}

TEST(a_shield_lets_it_wait)
{
	weft_scope s, shield;
	weft_time until;

	begin();
	weft_scope_open(&s, WEFT_NOW, "over");
	until = weft_now() + 2 * WEFT_MS;
	weft_scope_shield(&shield, until, "cleanup");
	CHECK_EQ(receives(), -ETIMEDOUT);
	CHECK(weft_now() >= until);
	CHECK_EQ(weft_scope_close(&shield), -ETIMEDOUT);
	CHECK_EQ(receives(), -ETIMEDOUT);
	CHECK_EQ(weft_scope_close(&s), -ETIMEDOUT);
}

static _Atomic int nr_received, nr_sent;

static void *receives_in_scopes(void *arg)
{
	int n;

	for (int i = 0; i < 300; i++) {
		weft_scope s;
		int ret;

		weft_scope_open(&s, weft_now() + 20 * WEFT_US, "tiny");
		ret = weft_chan_recv((weft_chan *)arg, &n, WEFT_NEVER);
		nr_received += ret == 0;
		CHECK_EQ(weft_scope_close(&s), ret);
	}
	weft_chan_close(arg);
	return NULL;
}

/* A hand-over and the end of a scope at the same time are one of the two, and the scope says which. */
TEST(no_item_is_lost_to_a_scope_that_ends)
{
	weft_chan *ch = weft_chan_new(sizeof(int), 0, "scoped");
	pthread_t t = spawn(receives_in_scopes, ch);
	int n = 1;

	while (weft_chan_send(ch, &n, WEFT_NEVER) == 0)
		nr_sent++;
	join(t);
	CHECK_EQ(nr_sent, nr_received);
	weft_chan_free(ch);
}
