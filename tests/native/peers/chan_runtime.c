// SPDX-License-Identifier: Apache-2.0
/*
 * Follows by behaviour the tests of channels of Go's runtime: src/runtime/chan_test.go. Where they expect a choice by chance, ours
 * goes by the order written; where Go panics, ours returns -EPIPE.
 */
#include <weft/weft.h>

#include "native.h"
#include "tap.h"
#include "threads.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>

#define NR(ops) ((unsigned)(sizeof(ops) / sizeof((ops)[0])))

static weft_chan *new_chan(size_t capacity)
{
	return weft_chan_new(sizeof(int), capacity, "test");
}

/* --- a select acts on one moment, not on a smeared one --- */

static weft_event event[2], never[600];
static atomic_bool is_over;

/* Between what may be ready stands much that is not: so long a time passes between looking at the one and the other. */
static unsigned put_far_apart(struct weft_op *ops, struct weft_op first, struct weft_op last)
{
	unsigned nr = 0;

	ops[nr++] = first;
	while (nr <= NR(never)) {
		ops[nr] = (struct weft_op)WEFT_ON(&never[nr - 1]);
		nr++;
	}
	ops[nr++] = last;
	return nr;
}

/* At any time at least one of both is set. */
static void *passes_a_flag_on(void *arg)
{
	while (!atomic_load(&is_over))
		for (int i = 0; i < 2; i++) {
			weft_event_set(&event[i]);
			weft_event_clear(&event[!i]);
		}
	return arg;
}

TEST(an_attempt_at_several_sees_one_moment)
{
	struct weft_op ops[NR(never) + 2];
	unsigned nr = put_far_apart(ops, (struct weft_op)WEFT_ON(&event[0]),
				    (struct weft_op)WEFT_ON(&event[1]));
	pthread_t t;

	atomic_store(&is_over, false);
	weft_event_set(&event[1]);
	t = spawn(passes_a_flag_on, NULL);
	for (int i = 0; i < 5000; i++)
		if (!CHECK(weft_select(ops, nr, WEFT_NOW) >= 0))
			break;
	atomic_store(&is_over, true);
	join(t);
}

static weft_event stop;
static weft_chan *jobs, *acks;

#define ROUNDS 5000

/* The receiver of the job could have known that it was to stop. */
static void *stops_then_sends(void *arg)
{
	int n = 0;

	for (int i = 0; i < ROUNDS; i++) {
		weft_event_set(&stop);
		CHECK_EQ(weft_chan_send(jobs, &i, WEFT_NEVER), 0);
		if (weft_chan_recv(acks, &n, WEFT_NEVER))
			break;
		weft_event_clear(&stop);
		for (volatile int k = i * 37 % 4096; k; k--) /* another moment each time */
			;
	}
	return arg;
}

TEST(what_was_ready_before_and_stands_first_is_done_first)
{
	pthread_t t;

	jobs = new_chan(1);
	acks = new_chan(0);
	t = spawn(stops_then_sends, NULL);
	for (int i = 0, tries = 0; i < ROUNDS;) {
		int n = -1, which;
		struct weft_op ops[NR(never) + 2];
		unsigned nr = put_far_apart(ops, (struct weft_op)WEFT_ON(&stop),
					    (struct weft_op)WEFT_RECV(jobs, &n));

		which = weft_select(ops, nr, i % 2 ? WEFT_NOW : WEFT_NEVER);
		if (++tries % 32 == 0)
			sched_yield();
		if (which == -ETIMEDOUT)
			continue;
		if (!CHECK_EQ(which, 0))
			break;
		/* It was set the last time, and is about to be cleared. */
		if (weft_chan_recv(jobs, &n, WEFT_NOW))
			continue;
		CHECK_EQ(n, i++);
		CHECK_EQ(weft_chan_send(acks, &n, WEFT_NEVER), 0);
	}
	weft_chan_close(acks);
	join(t);
	weft_chan_free(jobs);
	weft_chan_free(acks);
}

/* --- an attempt at what is closed meanwhile --- */

static void *attempts_one(void *arg)
{
	int *result = arg, n;

	*result = weft_chan_recv(jobs, &n, WEFT_NOW);
	return NULL;
}

TEST(one_of_two_attempts_gets_the_item_of_a_channel_that_is_closed_meanwhile)
{
	for (int i = 0; i < 300; i++) {
		int n = 1, mine, theirs = 1;
		pthread_t t;

		jobs = new_chan(1);
		CHECK_EQ(weft_chan_send(jobs, &n, WEFT_NOW), 0);
		t = spawn(attempts_one, &theirs);
		weft_chan_close(jobs);
		mine = weft_chan_recv(jobs, &n, WEFT_NEVER);
		join(t);
		CHECK(mine == 0 ? theirs == -EPIPE : mine == -EPIPE && theirs == 0);
		weft_chan_free(jobs);
	}
}

/* --- a select in both directions --- */

static void *sends_or_receives(void *arg)
{
	int me = *(int *)arg;

	for (int i = 0; i < 1000; i++) {
		int n = me, got = -1, which;
		struct weft_op send = WEFT_SEND(jobs, &n), recv = WEFT_RECV(jobs, &got);
		struct weft_op ops[2] = { i % 2 ? send : recv, i % 2 ? recv : send };

		which = weft_select(ops, 2, WEFT_NEVER);
		CHECK(which == 0 || which == 1);
		if (ops[which].kind == WEFT_OP_RECV)
			CHECK_EQ(got, !me);
	}
	return NULL;
}

TEST(two_that_would_send_or_receive_serve_each_other)
{
	int names[] = { 0, 1 };
	pthread_t t[2];

	jobs = new_chan(0);
	for (int i = 0; i < 2; i++)
		t[i] = spawn(sends_or_receives, &names[i]);
	for (int i = 0; i < 2; i++)
		join(t[i]);
	weft_chan_free(jobs);
}

/* --- all ways to send and to receive at once --- */

#define EACH 1000
static weft_chan *four[4];

static void *sends_to_one(void *arg)
{
	for (int i = 0; i < EACH; i++)
		CHECK_EQ(weft_chan_send((weft_chan *)arg, &i, WEFT_NEVER), 0);
	return NULL;
}

static void *receives_from_one(void *arg)
{
	int n;

	for (int i = 0; i < EACH; i++)
		CHECK_EQ(weft_chan_recv((weft_chan *)arg, &n, WEFT_NEVER), 0);
	return NULL;
}

/* Each channel so often; one that has had its share is taken out. */
static void *selects_all(void *sends)
{
	int left[4] = { EACH, EACH, EACH, EACH }, n[4] = { 0 };
	struct weft_op ops[4];

	for (int i = 0; i < 4; i++)
		ops[i] = sends ? (struct weft_op)WEFT_SEND(four[3 - i], &n[i])
			       : (struct weft_op)WEFT_RECV(four[i], &n[i]);
	for (int i = 0; i < 4 * EACH; i++) {
		int which = weft_select(ops, 4, WEFT_NEVER);

		if (!CHECK(which >= 0 && ops[which].result == 0))
			break;
		if (--left[which] == 0)
			ops[which].object = NULL;
	}
	return NULL;
}

TEST(all_ways_to_send_and_to_receive_at_once_come_to_an_end)
{
	pthread_t t[10];
	int nr = 0;

	for (int i = 0; i < 4; i++)
		four[i] = new_chan(i < 2 ? 0 : (size_t)i);
	for (int i = 0; i < 4; i++) {
		t[nr++] = spawn(sends_to_one, four[i]);
		t[nr++] = spawn(receives_from_one, four[i]);
	}
	t[nr++] = spawn(selects_all, four);
	t[nr++] = spawn(selects_all, NULL);
	while (nr)
		join(t[--nr]);
	for (int i = 0; i < 4; i++) {
		CHECK_EQ(weft_chan_count(four[i]), 0);
		weft_chan_free(four[i]);
	}
}

/* --- no choice by chance --- */

static void *receives_nothing_but_ones(void *arg)
{
	int n = 0;

	for (int i = 0; i < 100; i++) {
		CHECK_EQ(weft_chan_recv(jobs, &n, WEFT_NEVER), 0);
		CHECK_EQ(n, 1);
	}
	return arg;
}

TEST(of_two_sends_to_one_channel_the_first_written_is_done)
{
	for (size_t capacity = 0; capacity <= 100; capacity += 100) {
		int one = 1, zero = 0;
		pthread_t t;

		jobs = new_chan(capacity);
		t = spawn(receives_nothing_but_ones, NULL);
		for (int i = 0; i < 100; i++) {
			struct weft_op ops[] = { WEFT_SEND(jobs, &one), WEFT_SEND(jobs, &zero) };

			CHECK_EQ(weft_select(ops, 2, WEFT_NEVER), 0);
		}
		join(t);
		weft_chan_free(jobs);
	}
}

/* --- many consumers, and an end that goes through --- */

#define WORKERS 23
static pthread_t workers[WORKERS];

static void *works(void *arg)
{
	int n;

	while (weft_chan_recv(jobs, &n, WEFT_NEVER) == 0) {
		if (n % WORKERS == *(int *)arg)
			sched_yield();
		CHECK_EQ(weft_chan_send(acks, &n, WEFT_NEVER), 0);
	}
	return NULL;
}

static void *feeds_and_closes(void *arg)
{
	for (int i = 0; i < ROUNDS; i++)
		CHECK_EQ(weft_chan_send(jobs, &i, WEFT_NEVER), 0);
	weft_chan_close(jobs);
	for (int i = 0; i < WORKERS; i++)
		join(workers[i]);
	weft_chan_close(acks);
	return arg;
}

TEST(an_end_comes_through_after_all_that_many_workers_have_passed_on)
{
	static int names[WORKERS];
	long sum = 0, nr = 0;
	pthread_t t;
	int n;

	jobs = new_chan(WORKERS * 3);
	acks = new_chan(WORKERS * 3);
	for (int i = 0; i < WORKERS; i++) {
		names[i] = i;
		workers[i] = spawn(works, &names[i]);
	}
	t = spawn(feeds_and_closes, NULL);
	for (; weft_chan_recv(acks, &n, WEFT_NEVER) == 0; nr++)
		sum += n;
	CHECK_EQ(nr, ROUNDS);
	CHECK_EQ(sum, (long)ROUNDS * (ROUNDS - 1) / 2);
	join(t);
	weft_chan_free(jobs);
	weft_chan_free(acks);
}

/* --- twice in one row --- */

static void *stands_there_twice(void *arg)
{
	int n;
	struct weft_op ops[] = { WEFT_RECV(jobs, &n), WEFT_RECV(jobs, &n), WEFT_RECV(acks, &n) };

	CHECK_EQ(weft_select(ops, 3, WEFT_NEVER), 2);
	CHECK_EQ(n, 7);
	return arg;
}

static void *receives_eight(void *arg)
{
	int n = 0;

	CHECK_EQ(weft_chan_recv(jobs, &n, WEFT_NEVER), 0);
	CHECK_EQ(n, 8);
	return arg;
}

TEST(a_select_that_stood_in_a_row_twice_leaves_it_whole)
{
	for (int i = 0; i < 200; i++) {
		int seven = 7, eight = 8;
		pthread_t t[2];

		jobs = new_chan(0);
		acks = new_chan(0);
		t[0] = spawn(stands_there_twice, NULL);
		t[1] = spawn(receives_eight, NULL);
		CHECK_EQ(weft_chan_send(acks, &seven, WEFT_NEVER), 0);
		join(t[0]);
		CHECK_EQ(weft_chan_send(jobs, &eight, WEFT_NEVER), 0);
		join(t[1]);
		weft_chan_free(jobs);
		weft_chan_free(acks);
	}
}
