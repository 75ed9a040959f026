// SPDX-License-Identifier: Apache-2.0
/*
 * Follows by behaviour the tests of crossbeam-channel: zero.rs, array.rs, mpsc.rs, ready.rs, never.rs. There a channel ends with
 * its last sender or receiver; ours is closed. Their tests of fairness do not apply: a select goes by the order written.
 */
#include <weft/weft.h>

#include "native.h"
#include "tap.h"
#include "threads.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>

static weft_chan *chan, *other;

static weft_chan *new_chan(size_t bytes, size_t capacity)
{
	return weft_chan_new(bytes, capacity, "test");
}

/* --- zero: len --- */

#define ITEMS 2000

static void *sends_all(void *arg)
{
	for (int i = 0; i < ITEMS; i++) {
		CHECK_EQ(weft_chan_send(chan, &i, WEFT_NEVER), 0);
		if (arg)
			CHECK_EQ(weft_chan_count(chan), 0);
	}
	return arg;
}

TEST(in_a_rendezvous_nothing_ever_lies)
{
	pthread_t t;
	int n;

	chan = new_chan(sizeof(int), 0);
	t = spawn(sends_all, chan);
	for (int i = 0; i < ITEMS; i++) {
		CHECK_EQ(weft_chan_recv(chan, &n, WEFT_NEVER), 0);
		CHECK_EQ(n, i);
		CHECK_EQ(weft_chan_count(chan), 0);
	}
	join(t);
	weft_chan_free(chan);
}

/* --- array: len, with a bound --- */

TEST(in_a_buffer_there_is_never_more_than_it_holds)
{
	pthread_t t;
	int n;

	chan = new_chan(sizeof(int), 7);
	t = spawn(sends_all, NULL);
	for (int i = 0; i < ITEMS; i++) {
		CHECK(weft_chan_count(chan) <= 7);
		CHECK_EQ(weft_chan_recv(chan, &n, WEFT_NEVER), 0);
		CHECK_EQ(n, i);
	}
	join(t);
	CHECK_EQ(weft_chan_count(chan), 0);
	weft_chan_free(chan);
}

/* --- array: linearizable --- */

static void *sends_and_takes_one_back(void *arg)
{
	int n = 0;

	for (int i = 0; i < ITEMS; i++) {
		struct weft_op op = WEFT_RECV(chan, &n);

		CHECK_EQ(weft_chan_send(chan, &i, WEFT_NEVER), 0);
		/* There is one for each that has sent: whoever else takes ours has left us another. */
		if (i % 2)
			CHECK_EQ(weft_chan_recv(chan, &n, WEFT_NOW), 0);
		else
			CHECK_EQ(weft_select(&op, 1, WEFT_NOW), 0);
	}
	return arg;
}

TEST(what_was_sent_can_be_received_without_a_wait)
{
	pthread_t t[4];

	chan = new_chan(sizeof(int), 4);
	for (int i = 0; i < 4; i++)
		t[i] = spawn(sends_and_takes_one_back, NULL);
	for (int i = 0; i < 4; i++)
		join(t[i]);
	CHECK_EQ(weft_chan_count(chan), 0);
	weft_chan_free(chan);
}

/* --- mpmc --- */

static atomic_int seen[ITEMS];

static void *receives_all(void *arg)
{
	int n;

	for (int i = 0; i < ITEMS; i++)
		if (CHECK_EQ(weft_chan_recv(chan, &n, WEFT_NEVER), 0))
			atomic_fetch_add(&seen[n], 1);
	return arg;
}

TEST(many_send_and_many_receive_each_item_once)
{
	for (size_t capacity = 0; capacity < 5; capacity += 2) {
		pthread_t t[8];
		int wrong = 0;

		chan = new_chan(sizeof(int), capacity);
		for (int i = 0; i < 8; i++)
			t[i] = spawn(i % 2 ? sends_all : receives_all, NULL);
		for (int i = 0; i < 8; i++)
			join(t[i]);
		for (int i = 0; i < ITEMS; i++)
			wrong += atomic_exchange(&seen[i], 0) != 4;
		CHECK_EQ(wrong, 0);
		weft_chan_free(chan);
	}
}

/* --- stress_timeout_two_threads: an item that was not sent in time is sent again, and comes once --- */

/* Now and then it is over already: never on both sides. */
static weft_time soon(int i)
{
	return weft_now() + i % 4 * 20 * WEFT_US;
}

static void *sends_in_vain_now_and_then(void *arg)
{
	int *timeouts = arg;

	for (int i = 0; i < ITEMS / 8; i++) {
		struct weft_op op = WEFT_SEND(chan, &i);
		int error;

		do {
			error = i % 2 ? weft_chan_send(chan, &i, soon(i))
				      : weft_select(&op, 1, soon(i));
			if (error == -ETIMEDOUT && ++*timeouts)
				sched_yield();
		} while (error == -ETIMEDOUT);
		CHECK_EQ(error, 0);
	}
	return arg;
}

TEST(a_send_that_was_late_has_not_sent)
{
	for (size_t capacity = 0; capacity < 3; capacity++) {
		int timeouts = 0, n;
		pthread_t t;

		chan = new_chan(sizeof(int), capacity);
		t = spawn(sends_in_vain_now_and_then, &timeouts);
		for (int i = 0; i < ITEMS / 8;) {
			struct weft_op op = WEFT_RECV(chan, &n);
			int error;

			n = -1;
			error = i % 3 ? weft_chan_recv(chan, &n, soon(i + 2))
				      : weft_select(&op, 1, soon(i + 2));
			if (error == -ETIMEDOUT) {
				if (!CHECK_EQ(n, -1))
					break;
				sched_yield();
				continue;
			}
			CHECK_EQ(error, 0);
			if (!CHECK_EQ(n, i++))
				break;
		}
		join(t);
		CHECK_EQ(weft_chan_count(chan), 0);
		weft_chan_free(chan);
	}
}

/* --- stress_oneshot, channel_through_channel: the receiver frees what the sender may still be leaving --- */

static void *sends_channels(void *arg)
{
	weft_chan *to = arg;

	for (int i = 0; i < ITEMS; i++) {
		weft_chan *next = new_chan(sizeof(weft_chan *), (size_t)i % 2);

		CHECK_EQ(weft_chan_send(to, &next, WEFT_NEVER), 0);
		to = next;
	}
	weft_chan_close(to);
	return NULL;
}

TEST(channels_go_through_channels_and_each_is_freed_by_who_has_received_from_it)
{
	weft_chan *from = new_chan(sizeof(weft_chan *), 0), *next;
	pthread_t t = spawn(sends_channels, from);

	for (int i = 0; i < ITEMS; i++) {
		if (!CHECK_EQ(weft_chan_recv(from, &next, WEFT_NEVER), 0))
			return;
		weft_chan_free(from);
		from = next;
	}
	CHECK_EQ(weft_chan_recv(from, &next, WEFT_NEVER), -EPIPE);
	join(t);
	weft_chan_free(from);
}

/* --- stress_iter: nobody but attempts, on one side --- */

static void *answers(void *arg)
{
	int n = 1;

	while (weft_chan_take(chan, WEFT_NEVER) == 0)
		if (weft_chan_send(other, &n, WEFT_NEVER))
			break;
	return arg;
}

TEST(attempts_alone_get_all_answers)
{
	int sum = 0, n;
	pthread_t t;

	chan = new_chan(0, 0);
	other = new_chan(sizeof(int), 0);
	t = spawn(answers, NULL);
	while (sum < 300) {
		while (weft_chan_recv(other, &n, WEFT_NOW) == 0)
			sum += n;
		if (weft_chan_give(chan, WEFT_NOW))
			sched_yield();
	}
	weft_chan_close(chan);
	weft_chan_close(other);
	join(t);
	weft_chan_free(chan);
	weft_chan_free(other);
}

/* --- mpsc: a receiver that goes away --- */

static void *sends_until_closed(void *arg)
{
	atomic_int *nr_sent = arg;
	int i = 0;

	for (;; i++) {
		struct weft_op ops[] = { WEFT_RECV(NULL, &i), WEFT_SEND(chan, &i) };
		int error = weft_chan_send(chan, &i, WEFT_NEVER);

		if (error && CHECK_EQ(error, -EPIPE))
			break;
		atomic_fetch_add(nr_sent, 1);
		CHECK_EQ(weft_select(ops, 2, WEFT_NEVER), 1);
		if (ops[1].result && CHECK_EQ(ops[1].result, -EPIPE))
			break;
		atomic_fetch_add(nr_sent, 1);
	}
	return NULL;
}

TEST(what_was_sent_before_the_end_is_received_and_no_more)
{
	for (size_t capacity = 0; capacity < 4; capacity++)
		for (int nr = 0; nr < 40; nr += 13) {
			atomic_int nr_sent = 0;
			int nr_received = 0, n;
			pthread_t t[6];

			chan = new_chan(sizeof(int), capacity);
			for (int i = 0; i < 6; i++)
				t[i] = spawn(sends_until_closed, &nr_sent);
			for (; nr_received < nr; nr_received++)
				CHECK_EQ(weft_chan_recv(chan, &n, WEFT_NEVER), 0);
			weft_chan_close(chan);
			while (weft_chan_recv(chan, &n, WEFT_NEVER) == 0)
				nr_received++;
			for (int i = 0; i < 6; i++)
				join(t[i]);
			CHECK_EQ(nr_received, atomic_load(&nr_sent));
			weft_chan_free(chan);
		}
}

/* --- never --- */

TEST(an_operation_that_never_is_does_not_keep_others_from_their_turn)
{
	int n = 5, out = 0;
	struct weft_op ops[] = { WEFT_RECV(NULL, &out), WEFT_SEND(NULL, &n), WEFT_ON(NULL),
				 WEFT_RECV(NULL, &out) };

	CHECK_EQ(weft_select(ops, 4, WEFT_NOW), -ETIMEDOUT);
	CHECK_EQ(weft_select(ops, 4, weft_now() + WEFT_MS), -ETIMEDOUT);
	chan = new_chan(sizeof(int), 1);
	CHECK_EQ(weft_chan_send(chan, &n, WEFT_NEVER), 0);
	ops[3].object = chan;
	CHECK_EQ(weft_select(ops, 4, WEFT_NEVER), 3);
	CHECK_EQ(out, 5);
	weft_chan_free(chan);
}
