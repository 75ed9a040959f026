// SPDX-License-Identifier: Apache-2.0
/* Select over descriptors, channels and events in one wait. */
#include <weft/weft.h>

#include "native.h"
#include "tap.h"
#include "threads.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define NR(ops) ((unsigned)(sizeof(ops) / sizeof((ops)[0])))

TEST(a_descriptor_that_is_ready_is_done)
{
	int fds[2];
	struct weft_op op;

	CHECK_EQ(pipe(fds), 0);
	op = (struct weft_op)WEFT_FD(fds[0], POLLIN);
	errno = 77;
	CHECK_EQ(weft_select(&op, 1, WEFT_NOW), -ETIMEDOUT);
	CHECK_EQ(weft_select(&op, 1, weft_now() + WEFT_MS), -ETIMEDOUT);
	CHECK_EQ(errno, 77);
	CHECK_EQ(write(fds[1], "x", 1), 1);
	CHECK_EQ(weft_select(&op, 1, WEFT_NEVER), 0);
	CHECK_EQ(op.revents, POLLIN);
	CHECK_EQ(op.result, 0);
	close(fds[0]);
	close(fds[1]);
	op.revents = 0;
	CHECK_EQ(weft_select(&op, 1, WEFT_NEVER), 0);
	CHECK_EQ(op.revents, POLLNVAL);
}

TEST(it_stands_in_the_order_written)
{
	weft_chan *ch = weft_chan_new(sizeof(int), 1, "ch");
	int fds[2], n = 1;
	struct weft_op ops[3];

	CHECK_EQ(pipe(fds), 0);
	ops[0] = (struct weft_op)WEFT_FD(fds[0], POLLIN);
	ops[1] = (struct weft_op)WEFT_RECV(ch, &n);
	ops[2] = (struct weft_op)WEFT_FD(fds[1], POLLOUT);
	CHECK_EQ(weft_select(ops, 3, WEFT_NEVER), 2);
	CHECK_EQ(ops[2].revents, POLLOUT);
	CHECK_EQ(weft_chan_send(ch, &n, WEFT_NOW), 0);
	CHECK_EQ(weft_select(ops, 3, WEFT_NEVER), 1);
	CHECK_EQ(weft_chan_send(ch, &n, WEFT_NOW), 0);
	CHECK_EQ(write(fds[1], "x", 1), 1);
	CHECK_EQ(weft_select(ops, 3, WEFT_NEVER), 0);
	CHECK_EQ(weft_chan_count(ch), 1);
	close(fds[0]);
	close(fds[1]);
	weft_chan_free(ch);
}

static weft_chan *jobs;
static weft_event stop;
static int pair[2];
static int nr_done[3];

static void *serves(void *arg)
{
	long job;
	char c;
	struct weft_op ops[] = { WEFT_FD(pair[0], POLLIN), WEFT_RECV(jobs, &job), WEFT_ON(&stop) };

	for (;;) {
		int which = weft_select(ops, NR(ops), WEFT_NEVER);

		if (which < 0 || !CHECK(which < 3))
			return NULL;
		nr_done[which]++;
		if (which == 0)
			CHECK_EQ(read(pair[0], &c, 1), 1);
		if (which == 2)
			return arg;
	}
}

TEST(one_wait_is_ended_by_any_of_them)
{
	pthread_t t;

	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	jobs = weft_chan_new(sizeof(long), 0, "jobs");
	t = spawn(serves, NULL);
	for (long i = 0; i < 200; i++) {
		if (i % 3 == 0)
			CHECK_EQ(write(pair[1], "x", 1), 1);
		else
			CHECK_EQ(weft_chan_send(jobs, &i, WEFT_NEVER), 0);
	}
	/* Room for a rendezvous: all jobs were taken. The data in the socket stand before the event. */
	weft_event_set(&stop);
	join(t);
	CHECK_EQ(nr_done[0], 67);
	CHECK_EQ(nr_done[1], 133);
	CHECK_EQ(nr_done[2], 1);
	close(pair[0]);
	close(pair[1]);
	weft_chan_free(jobs);
}

static _Atomic int nr_handled;

static void on_signal(int sig)
{
	(void)sig;
	nr_handled++;
}

static void *waits_for_stop(void *arg)
{
	struct weft_op ops[] = { WEFT_FD(pair[0], POLLIN), WEFT_ON(&stop) };

	CHECK_EQ(weft_select(ops, NR(ops), WEFT_NEVER), 1);
	return arg;
}

TEST(a_handler_runs_and_the_wait_goes_on)
{
	struct sigaction sa = { .sa_handler = on_signal };
	pthread_t t;

	sigaction(SIGUSR1, &sa, NULL);
	weft_event_clear(&stop);
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	t = spawn(waits_for_stop, NULL);
	for (int i = 1; i <= 20; i++) {
		pthread_kill(t, SIGUSR1);
		while (nr_handled < i)
			sched_yield();
	}
	weft_event_set(&stop);
	join(t);
	close(pair[0]);
	close(pair[1]);
}

TEST(no_descriptor_is_left_behind)
{
	weft_event e = { 0 };
	int fds[2], before, after;
	struct weft_op ops[2];

	CHECK_EQ(pipe(fds), 0);
	before = dup(0);
	close(before);
	ops[0] = (struct weft_op)WEFT_ON(&e);
	ops[1] = (struct weft_op)WEFT_FD(fds[0], POLLIN);
	for (int i = 0; i < 10; i++)
		CHECK_EQ(weft_select(ops, 2, weft_now() + 100 * WEFT_US), -ETIMEDOUT);
	after = dup(0);
	CHECK_EQ(after, before);
	close(after);
	close(fds[0]);
	close(fds[1]);
}

#define MOST 30

TEST(many_descriptors_are_no_different)
{
	weft_chan *ch = weft_chan_new(0, 1, "last");
	struct weft_op ops[MOST + 1];
	int fds[MOST][2];

	for (int i = 0; i < MOST; i++) {
		CHECK_EQ(pipe(fds[i]), 0);
		ops[i] = (struct weft_op)WEFT_FD(i % 5 ? fds[i][0] : -1, POLLIN);
	}
	ops[MOST] = (struct weft_op)WEFT_TAKE(ch);
	CHECK_EQ(weft_select(ops, MOST + 1, weft_now() + WEFT_MS), -ETIMEDOUT);
	CHECK_EQ(write(fds[22][1], "x", 1), 1);
	CHECK_EQ(weft_select(ops, MOST + 1, WEFT_NEVER), 22);
	CHECK_EQ(weft_chan_give(ch, WEFT_NOW), 0);
	ops[22].fd = -1;
	CHECK_EQ(weft_select(ops, MOST + 1, WEFT_NEVER), MOST);
	for (int i = 0; i < MOST; i++) {
		close(fds[i][0]);
		close(fds[i][1]);
	}
	weft_chan_free(ch);
}

static void *writes_late(void *arg)
{
	for (int i = 0; i < 100; i++) {
		sched_yield();
		CHECK_EQ(write(pair[1], "x", 1), 1);
		CHECK_EQ(weft_chan_take(jobs, WEFT_NEVER), 0);
	}
	return arg;
}

TEST(data_that_comes_while_it_goes_to_sleep_is_seen)
{
	struct weft_op ops[2];
	pthread_t t;
	char c;

	weft_event_clear(&stop);
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	jobs = weft_chan_new(0, 0, "answers");
	ops[0] = (struct weft_op)WEFT_ON(&stop);
	ops[1] = (struct weft_op)WEFT_FD(pair[0], POLLIN);
	t = spawn(writes_late, NULL);
	for (int i = 0; i < 100; i++) {
		CHECK_EQ(weft_select(ops, 2, WEFT_NEVER), 1);
		CHECK_EQ(read(pair[0], &c, 1), 1);
		CHECK_EQ(weft_chan_give(jobs, WEFT_NEVER), 0);
	}
	join(t);
	close(pair[0]);
	close(pair[1]);
	weft_chan_free(jobs);
}
