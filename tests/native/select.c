// SPDX-License-Identifier: Apache-2.0
/* Select over channels and events: which one is done, and that it is one. */
#include <weft/weft.h>

#include "native.h"
#include "tap.h"
#include "threads.h"

#include <errno.h>
#include <sched.h>

#define NR(ops) ((unsigned)(sizeof(ops) / sizeof((ops)[0])))

TEST(nothing_to_select_from_is_never_done)
{
	struct weft_op none[] = {
		{ 0 },
		WEFT_ON((weft_event *)NULL),
		WEFT_RECV((weft_chan *)NULL, (int *)0),
		WEFT_FD(-1, 1),
		WEFT_GIVE((weft_chan *)NULL),
	};
	weft_time until = weft_now() + 2 * WEFT_MS;

	CHECK_EQ(weft_select(NULL, 0, WEFT_NOW), -ETIMEDOUT);
	CHECK_EQ(weft_select(none, NR(none), WEFT_NOW), -ETIMEDOUT);
	CHECK_EQ(weft_select(none, NR(none), until), -ETIMEDOUT);
	CHECK(weft_now() >= until);
}

TEST(the_first_in_the_order_written_is_done)
{
	weft_chan *a = weft_chan_new(sizeof(int), 4, "a"), *b = weft_chan_new(sizeof(int), 4, "b");
	weft_event stop = { 0 };
	int n = 1, in_a = 0, in_b = 0;
	struct weft_op ops[] = { WEFT_ON(&stop), WEFT_RECV(b, &in_b), WEFT_RECV(a, &in_a) };

	for (int i = 0; i < 2; i++) {
		CHECK_EQ(weft_chan_send(a, &n, WEFT_NOW), 0);
		CHECK_EQ(weft_chan_send(b, &n, WEFT_NOW), 0);
	}
	CHECK_EQ(weft_select(ops, NR(ops), WEFT_NEVER), 1);
	CHECK_EQ(weft_chan_count(a), 2);
	CHECK_EQ(weft_chan_count(b), 1);
	CHECK_EQ(weft_select(ops, NR(ops), WEFT_NOW), 1);
	CHECK_EQ(weft_select(ops, NR(ops), WEFT_NOW), 2);
	weft_event_set(&stop);
	CHECK_EQ(weft_select(ops, NR(ops), WEFT_NOW), 0);
	CHECK_EQ(weft_chan_count(a), 1);
	weft_chan_free(a);
	weft_chan_free(b);
}

TEST(a_closed_channel_is_done_with_its_error)
{
	weft_chan *ch = weft_chan_new(sizeof(int), 1, "closed");
	int n = 3, out = 0;
	struct weft_op recv = WEFT_RECV(ch, &out), send = WEFT_SEND(ch, &n);

	CHECK_EQ(weft_select(&send, 1, WEFT_NOW), 0);
	CHECK_EQ(send.result, 0);
	weft_chan_close(ch);
	CHECK_EQ(weft_select(&send, 1, WEFT_NOW), 0);
	CHECK_EQ(send.result, -EPIPE);
	CHECK_EQ(weft_select(&recv, 1, WEFT_NOW), 0);
	CHECK_EQ(recv.result, 0);
	CHECK_EQ(out, 3);
	out = 7;
	CHECK_EQ(weft_select(&recv, 1, WEFT_NOW), 0);
	CHECK_EQ(recv.result, -EPIPE);
	CHECK_EQ(out, 7);
	weft_chan_free(ch);
}

static weft_chan *left, *right;

static void *sends_left(void *arg)
{
	int n = (int)(long)arg;

	CHECK_EQ(weft_chan_send(left, &n, WEFT_NEVER), 0);
	return NULL;
}

static void *receives_right(void *arg)
{
	CHECK_EQ(weft_chan_recv(right, (int *)arg, WEFT_NEVER), 0);
	return NULL;
}

TEST(a_select_waits_in_both_directions)
{
	for (int i = 0; i < 50; i++) {
		int in = 0, out = 5, got = 0, which;
		pthread_t t;
		struct weft_op ops[2];

		left = weft_chan_new(sizeof(int), 0, "left");
		right = weft_chan_new(sizeof(int), 0, "right");
		ops[0] = (struct weft_op)WEFT_RECV(left, &in);
		ops[1] = (struct weft_op)WEFT_SEND(right, &out);
		t = i % 2 ? spawn(sends_left, (void *)4l) : spawn(receives_right, &got);
		which = weft_select(ops, 2, WEFT_NEVER);
		join(t);
		CHECK_EQ(which, i % 2 ? 0 : 1);
		CHECK_EQ(in, i % 2 ? 4 : 0);
		CHECK_EQ(got, i % 2 ? 0 : 5);
		weft_chan_free(left);
		weft_chan_free(right);
	}
}

TEST(a_select_does_not_send_to_itself)
{
	weft_chan *ch = weft_chan_new(sizeof(int), 0, "own");
	int in = 0, out = 1;
	struct weft_op ops[] = { WEFT_SEND(ch, &out), WEFT_RECV(ch, &in), WEFT_RECV(ch, &in) };

	CHECK_EQ(weft_select(ops, NR(ops), WEFT_NOW), -ETIMEDOUT);
	CHECK_EQ(weft_select(ops, NR(ops), weft_now() + WEFT_MS), -ETIMEDOUT);
	weft_chan_free(ch);
}

static void *sends_or_receives(void *arg)
{
	int in = 0, out = 1, *nr = arg;
	struct weft_op ops[] = { WEFT_SEND(left, &out), WEFT_RECV(left, &in) };

	for (int i = 0; i < 300; i++)
		nr[weft_select(ops, 2, WEFT_NEVER)]++;
	return NULL;
}

/* Each operation of one is the other's counterpart. */
TEST(two_selects_on_one_channel_serve_each_other)
{
	int nr[2][2] = { { 0 } };
	pthread_t a, b;

	left = weft_chan_new(sizeof(int), 0, "both");
	a = spawn(sends_or_receives, nr[0]);
	b = spawn(sends_or_receives, nr[1]);
	join(a);
	join(b);
	CHECK_EQ(nr[0][0], nr[1][1]);
	CHECK_EQ(nr[0][1], nr[1][0]);
	CHECK_EQ(nr[0][0] + nr[0][1], 300);
	weft_chan_free(left);
}

#define MOST 40

TEST(many_operations_are_no_different)
{
	weft_chan *ch[MOST];
	struct weft_op ops[MOST];
	int item[MOST] = { 0 }, n = 9;

	for (int i = 0; i < MOST; i++) {
		ch[i] = weft_chan_new(sizeof(int), 1, "many");
		ops[i] = (struct weft_op)WEFT_RECV(ch[i], &item[i]);
	}
	CHECK_EQ(weft_select(ops, MOST, weft_now() + WEFT_MS), -ETIMEDOUT);
	CHECK_EQ(weft_chan_send(ch[31], &n, WEFT_NOW), 0);
	CHECK_EQ(weft_chan_send(ch[17], &n, WEFT_NOW), 0);
	CHECK_EQ(weft_select(ops, MOST, WEFT_NEVER), 17);
	CHECK_EQ(item[17], 9);
	CHECK_EQ(weft_select(ops, MOST, WEFT_NEVER), 31);
	for (int i = 0; i < MOST; i++)
		weft_chan_free(ch[i]);
}

static weft_event stop;
static _Atomic long nr_sent, nr_received;

static void *moves(void *arg)
{
	long in = 0, out = 1;
	struct weft_op ops[] = { WEFT_ON(&stop), WEFT_RECV(left, &in), WEFT_SEND(right, &out),
				 WEFT_RECV(right, &in), WEFT_SEND(left, &out) };

	for (long i = 0;; i++) {
		/* Some have hardly any time, so that ends and hand-overs meet. */
		weft_time until = (long)arg % 2 ? weft_now() + 5 * WEFT_US : WEFT_NEVER;
		int which = weft_select(ops, NR(ops), until);

		if (which == 0)
			return NULL;
		if (which == -ETIMEDOUT)
			continue;
		if (which % 2)
			nr_received++;
		else
			nr_sent++;
		if (nr_sent > 3000)
			weft_event_set(&stop);
	}
}

TEST(each_item_is_received_once_among_selects_that_give_up)
{
	for (size_t capacity = 0; capacity < 2; capacity++) {
		pthread_t t[6];
		long left_over;

		nr_sent = nr_received = 0;
		weft_event_clear(&stop);
		left = weft_chan_new(sizeof(long), capacity, "left");
		right = weft_chan_new(sizeof(long), capacity, "right");
		for (long i = 0; i < 6; i++)
			t[i] = spawn(moves, (void *)i);
		for (int i = 0; i < 6; i++)
			join(t[i]);
		left_over = (long)(weft_chan_count(left) + weft_chan_count(right));
		CHECK_EQ(nr_sent, nr_received + left_over);
		weft_chan_free(left);
		weft_chan_free(right);
	}
}

static weft_event events[4];

static void *sets_one(void *arg)
{
	weft_event_set(&events[(long)arg]);
	return NULL;
}

TEST(the_event_that_is_set_is_the_one)
{
	struct weft_op ops[] = { WEFT_ON(&events[0]), WEFT_ON(&events[1]), WEFT_ON(&events[2]),
				 WEFT_ON(&events[3]), WEFT_ON(&events[1]) };

	for (long i = 0; i < 40; i++) {
		pthread_t t = spawn(sets_one, (void *)(i % 4));

		CHECK_EQ(weft_select(ops, NR(ops), WEFT_NEVER), i % 4);
		join(t);
		weft_event_clear(&events[i % 4]);
	}
}

TEST(a_select_leaves_nothing_of_itself_behind)
{
	weft_chan *a = weft_chan_new(sizeof(int), 0, "a"), *b = weft_chan_new(sizeof(int), 0, "b");
	weft_event e = { 0 };
	int n = 0, out = 1;
	struct weft_op ops[] = { WEFT_RECV(a, &n), WEFT_ON(&e), WEFT_RECV(b, &n),
				 WEFT_RECV(a, &n) };

	for (int i = 0; i < 20; i++)
		CHECK_EQ(weft_select(ops, NR(ops), weft_now() + 100 * WEFT_US), -ETIMEDOUT);
	CHECK_EQ(weft_chan_send(a, &out, WEFT_NOW), -ETIMEDOUT);
	CHECK_EQ(weft_chan_send(b, &out, WEFT_NOW), -ETIMEDOUT);
	weft_event_set(&e);
	CHECK_EQ(weft_event_wait(&e, WEFT_NOW), 0);
	weft_chan_free(a);
	weft_chan_free(b);
}
