// SPDX-License-Identifier: Apache-2.0
/* The demands of Go's and crossbeam's tests of select, where they are not by chance. */
#include <weft/weft.h>

#include "native.h"
#include "tap.h"
#include "threads.h"

#include <errno.h>
#include <sched.h>

#define NR(ops) ((unsigned)(sizeof(ops) / sizeof((ops)[0])))

static weft_chan *a, *b, *c, *d;

/* --- doubleselect: a sender with four ways out, receivers that read from all; every number comes once --- */

#define NUMBERS 2000

static void *sends_by_four(void *arg)
{
	for (int i = 0; i < NUMBERS; i++) {
		struct weft_op ops[] = { WEFT_SEND(a, &i), WEFT_SEND(b, &i), WEFT_SEND(c, &i),
					 WEFT_SEND(d, &i) };
		int which = weft_select(ops, NR(ops), WEFT_NEVER);

		CHECK(which >= 0 && which < 4);
		CHECK_EQ(ops[which].result, 0);
	}
	weft_chan_close(a);
	weft_chan_close(b);
	weft_chan_close(c);
	weft_chan_close(d);
	return arg;
}

static weft_chan *merged;

static void *merges(void *arg)
{
	weft_chan *from = arg;
	int n;

	while (weft_chan_recv(from, &n, WEFT_NEVER) == 0)
		CHECK_EQ(weft_chan_send(merged, &n, WEFT_NEVER), 0);
	n = -1;
	CHECK_EQ(weft_chan_send(merged, &n, WEFT_NEVER), 0);
	return NULL;
}

TEST(a_select_that_could_send_twice_sends_once)
{
	static char seen[NUMBERS];
	pthread_t t[5];
	int ended = 0;

	a = weft_chan_new(sizeof(int), 0, "a");
	b = weft_chan_new(sizeof(int), 0, "b");
	c = weft_chan_new(sizeof(int), 0, "c");
	d = weft_chan_new(sizeof(int), 0, "d");
	merged = weft_chan_new(sizeof(int), 0, "merged");
	t[0] = spawn(sends_by_four, NULL);
	t[1] = spawn(merges, a);
	t[2] = spawn(merges, b);
	t[3] = spawn(merges, c);
	t[4] = spawn(merges, d);
	while (ended < 4) {
		int n;

		CHECK_EQ(weft_chan_recv(merged, &n, WEFT_NEVER), 0);
		if (n < 0)
			ended++;
		else if (!CHECK(n < NUMBERS && !seen[n]++))
			return;
	}
	for (int i = 0; i < NUMBERS; i++)
		if (!seen[i])
			CHECK(!"a number is missing");
	for (int i = 0; i < 5; i++)
		join(t[i]);
	weft_chan_free(a);
	weft_chan_free(b);
	weft_chan_free(c);
	weft_chan_free(d);
	weft_chan_free(merged);
}

/* --- select3: what waits and what does not, by channel --- */

TEST(each_kind_of_channel_is_ready_for_what_it_should_be)
{
	weft_chan *empty = weft_chan_new(sizeof(int), 1, "empty"),
		  *full = weft_chan_new(sizeof(int), 1, "full"),
		  *unbuffered = weft_chan_new(sizeof(int), 0, "unbuffered"),
		  *closed = weft_chan_new(sizeof(int), 1, "closed");
	int n = 1;
	const struct {
		weft_chan *ch;
		int send, recv; /* what select returns; then result */
		int send_result, recv_result;
	} rows[] = {
		{ NULL, -ETIMEDOUT, -ETIMEDOUT, 0, 0 },
		{ unbuffered, -ETIMEDOUT, -ETIMEDOUT, 0, 0 },
		{ empty, 0, 0, 0, 0 }, /* what was sent is received */
		{ full, -ETIMEDOUT, 0, 0, 0 },
		{ closed, 0, 0, -EPIPE, -EPIPE },
	};

	CHECK_EQ(weft_chan_send(full, &n, WEFT_NOW), 0);
	weft_chan_close(closed);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct weft_op send = WEFT_SEND(rows[i].ch, &n), recv = WEFT_RECV(rows[i].ch, &n);

		CHECK_EQ(weft_select(&send, 1, WEFT_NOW), rows[i].send);
		CHECK_EQ(send.result, rows[i].send_result);
		CHECK_EQ(weft_select(&recv, 1, WEFT_NOW), rows[i].recv);
		CHECK_EQ(recv.result, rows[i].recv_result);
	}
	weft_chan_free(empty);
	weft_chan_free(full);
	weft_chan_free(unbuffered);
	weft_chan_free(closed);
}

/* --- select6: those behind one that gives up are served --- */

static void *receives(void *arg)
{
	CHECK_EQ(weft_chan_recv(a, (int *)arg, WEFT_NEVER), 0);
	return NULL;
}

static void *selects_b(void *arg)
{
	int n;
	struct weft_op ops[] = { WEFT_RECV(a, &n), WEFT_RECV(b, (int *)arg) };

	CHECK_EQ(weft_select(ops, 2, WEFT_NEVER), 1);
	return NULL;
}

TEST(a_waiter_that_left_leaves_the_row_as_it_was)
{
	int first = 0, second = 0, other = 0, n = 5;
	pthread_t t[3];

	a = weft_chan_new(sizeof(int), 0, "a");
	b = weft_chan_new(sizeof(int), 0, "b");
	t[0] = spawn(selects_b, &other);
	while (weft_chan_send(b, &n, WEFT_NOW))
		sched_yield();
	join(t[0]);
	t[1] = spawn(receives, &first);
	t[2] = spawn(receives, &second);
	for (int i = 0; i < 2; i++)
		CHECK_EQ(weft_chan_send(a, &n, WEFT_NEVER), 0);
	join(t[1]);
	join(t[2]);
	CHECK_EQ(first + second + other, 15);
	weft_chan_free(a);
	weft_chan_free(b);
}

/* --- select7: receivers of all kinds do not hang when the sender sends by whatever way --- */

static void *receives_by_select(void *arg)
{
	int n = 0;
	struct weft_op op = WEFT_RECV(a, &n);

	CHECK_EQ(weft_select(&op, 1, WEFT_NEVER), 0);
	CHECK_EQ(n, 1);
	return arg;
}

static void *receives_by_two(void *arg)
{
	int n = 0;
	struct weft_op ops[] = { WEFT_RECV(b, &n), WEFT_RECV(a, &n) };

	CHECK_EQ(weft_select(ops, 2, WEFT_NEVER), 1);
	CHECK_EQ(n, 1);
	return arg;
}

static void *receives_plainly(void *arg)
{
	int n = 0;

	CHECK_EQ(weft_chan_recv(a, &n, WEFT_NEVER), 0);
	CHECK_EQ(n, 1);
	return arg;
}

TEST(every_way_to_send_meets_every_way_to_receive)
{
	void *(*const ways[])(void *) = { receives_plainly, receives_by_select, receives_by_two };

	for (int capacity = 0; capacity < 2; capacity++)
		for (int i = 0; i < 3; i++)
			for (int how = 0; how < 3; how++) {
				int n = 1, none;
				struct weft_op ops[] = { WEFT_SEND(a, &n), WEFT_RECV(b, &none) };
				pthread_t t;

				a = weft_chan_new(sizeof(int), (size_t)capacity, "a");
				b = weft_chan_new(sizeof(int), 0, "b");
				ops[0].object = a;
				ops[1].object = b;
				t = spawn(ways[i], NULL);
				if (how == 0)
					CHECK_EQ(weft_chan_send(a, &n, WEFT_NEVER), 0);
				else
					CHECK_EQ(weft_select(ops, (unsigned)how, WEFT_NEVER), 0);
				join(t);
				weft_chan_free(a);
				weft_chan_free(b);
			}
}

/* --- crossbeam: ready, mpsc, fairness of those that are closed --- */

static void *closes(void *arg)
{
	weft_chan_close(arg);
	return NULL;
}

TEST(a_select_that_waits_is_told_of_the_end)
{
	for (int i = 0; i < 60; i++) {
		int n = 1;
		pthread_t t;
		struct weft_op ops[2];

		a = weft_chan_new(sizeof(int), 0, "a");
		b = weft_chan_new(sizeof(int), 0, "b");
		ops[0] = (struct weft_op)WEFT_RECV(a, &n);
		ops[1] = (struct weft_op)WEFT_SEND(b, &n);
		t = spawn(closes, i % 2 ? a : b);
		CHECK_EQ(weft_select(ops, 2, WEFT_NEVER), i % 2 ? 0 : 1);
		CHECK_EQ(ops[i % 2 ? 0 : 1].result, -EPIPE);
		join(t);
		weft_chan_free(a);
		weft_chan_free(b);
	}
}

#define PRODUCERS 8
#define EACH 300

static void *produces(void *arg)
{
	for (int i = 0; i < EACH; i++)
		CHECK_EQ(weft_chan_send((weft_chan *)arg, &i, WEFT_NEVER), 0);
	return NULL;
}

TEST(many_producers_lose_nothing_and_keep_their_order)
{
	for (size_t capacity = 0; capacity < 6; capacity += 5) {
		weft_chan *ch[PRODUCERS];
		struct weft_op ops[PRODUCERS];
		int item[PRODUCERS], next[PRODUCERS] = { 0 }, left = PRODUCERS * EACH;
		pthread_t t[PRODUCERS];

		for (int i = 0; i < PRODUCERS; i++) {
			ch[i] = weft_chan_new(sizeof(int), capacity, "producer");
			ops[i] = (struct weft_op)WEFT_RECV(ch[i], &item[i]);
			t[i] = spawn(produces, ch[i]);
		}
		for (; left; left--) {
			int which = weft_select(ops, PRODUCERS, WEFT_NEVER);

			if (!CHECK(which >= 0 && item[which] == next[which]++))
				return;
		}
		for (int i = 0; i < PRODUCERS; i++) {
			join(t[i]);
			CHECK_EQ(next[i], EACH);
			weft_chan_free(ch[i]);
		}
	}
}
