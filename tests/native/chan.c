// SPDX-License-Identifier: Apache-2.0
/* Channels: order, room, closing, and what a mistake is answered with. */
#include <weft/weft.h>

#include "native.h"
#include "tap.h"
#include "threads.h"

#include <errno.h>
#include <malloc.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

TEST(items_come_out_as_they_went_in)
{
	weft_chan *ch = weft_chan_new(sizeof(int), 3, "numbers");

	/* Around the end of its memory, many times. */
	for (int round = 0; round < 10; round++) {
		for (int i = 0; i < 3; i++) {
			int n = 10 * round + i;

			CHECK_EQ(weft_chan_count(ch), i);
			CHECK_EQ(weft_chan_send(ch, &n, WEFT_NEVER), 0);
		}
		for (int i = 0; i < 3 - round % 2; i++) {
			int n = -1;

			CHECK_EQ(weft_chan_recv(ch, &n, WEFT_NEVER), 0);
			CHECK_EQ(n, 10 * round + i);
		}
		if (round % 2) {
			int n = -1;

			CHECK_EQ(weft_chan_recv(ch, &n, WEFT_NEVER), 0);
			CHECK_EQ(n, 10 * round + 2);
		}
	}
	weft_chan_free(ch);
}

TEST(a_full_or_empty_channel_makes_one_attempt_when_time_is_over)
{
	weft_chan *ch = weft_chan_new(sizeof(long), 1, "one");
	long n = 1, out = 5;

	CHECK_EQ(weft_chan_recv(ch, &out, WEFT_NOW), -ETIMEDOUT);
	CHECK_EQ(out, 5);
	CHECK_EQ(weft_chan_send(ch, &n, WEFT_NOW), 0);
	CHECK_EQ(weft_chan_send(ch, &n, WEFT_NOW), -ETIMEDOUT);
	CHECK_EQ(weft_chan_send(ch, &n, weft_now() + WEFT_MS), -ETIMEDOUT);
	CHECK_EQ(weft_chan_send(ch, &n, weft_now() - WEFT_SEC), -ETIMEDOUT);
	CHECK_EQ(weft_chan_count(ch), 1);
	CHECK_EQ(weft_chan_recv(ch, &out, WEFT_NOW), 0);
	CHECK_EQ(out, 1);
	CHECK_EQ(weft_chan_recv(ch, &out, weft_now() + WEFT_MS), -ETIMEDOUT);
	weft_chan_free(ch);
}

TEST(a_closed_channel_gives_what_is_in_it_and_takes_nothing)
{
	weft_chan *ch = weft_chan_new(sizeof(int), 4, "closing");
	int n = 1, out = 0;

	CHECK_EQ(weft_chan_send(ch, &n, WEFT_NEVER), 0);
	n = 2;
	CHECK_EQ(weft_chan_send(ch, &n, WEFT_NEVER), 0);
	for (int i = 0; i < 3; i++) {
		weft_chan_close(ch);
		CHECK_EQ(weft_chan_send(ch, &n, WEFT_NEVER), -EPIPE);
	}
	CHECK_EQ(weft_chan_recv(ch, &out, WEFT_NEVER), 0);
	CHECK_EQ(out, 1);
	CHECK_EQ(weft_chan_recv(ch, &out, WEFT_NOW), 0);
	CHECK_EQ(out, 2);
	CHECK_EQ(weft_chan_recv(ch, &out, WEFT_NEVER), -EPIPE);
	CHECK_EQ(weft_chan_recv(ch, &out, WEFT_NOW), -EPIPE);
	CHECK_EQ(out, 2);
	weft_chan_free(ch);
}

static weft_chan *shared;
static _Atomic int nr_ended;

static void *sends_until_closed(void *arg)
{
	int n = 1;

	while (weft_chan_send(shared, &n, WEFT_NEVER) == 0)
		;
	nr_ended++;
	return arg;
}

static void *receives_until_closed(void *arg)
{
	int n;

	while (weft_chan_recv(shared, &n, WEFT_NEVER) == 0)
		;
	nr_ended++;
	return arg;
}

TEST(closing_ends_all_waits)
{
	for (size_t capacity = 0; capacity < 3; capacity++) {
		pthread_t t[8];

		nr_ended = 0;
		shared = weft_chan_new(sizeof(int), capacity, "shared");
		for (int i = 0; i < 8; i++)
			t[i] = spawn(i % 4 == 3 ? receives_until_closed : sends_until_closed, NULL);
		weft_chan_close(shared);
		for (int i = 0; i < 8; i++)
			join(t[i]);
		CHECK_EQ(nr_ended, 8);
		weft_chan_free(shared);
	}
}

/* --- tokens --- */

static weft_chan *tokens;
static _Atomic int nr_inside, most_inside;

static void *comes_in(void *arg)
{
	for (int i = 0; i < 200; i++) {
		int inside;

		CHECK_EQ(weft_chan_take(tokens, WEFT_NEVER), 0);
		inside = ++nr_inside;
		if (inside > most_inside)
			most_inside = inside;
		sched_yield();
		nr_inside--;
		CHECK_EQ(weft_chan_give(tokens, WEFT_NEVER), 0);
	}
	return arg;
}

TEST(tokens_are_a_semaphore)
{
	pthread_t t[8];

	tokens = weft_chan_new(0, 3, "tokens");
	for (int i = 0; i < 3; i++)
		CHECK_EQ(weft_chan_give(tokens, WEFT_NOW), 0);
	CHECK_EQ(weft_chan_give(tokens, WEFT_NOW), -ETIMEDOUT);
	CHECK_EQ(weft_chan_count(tokens), 3);
	for (int i = 0; i < 8; i++)
		t[i] = spawn(comes_in, NULL);
	for (int i = 0; i < 8; i++)
		join(t[i]);
	CHECK(most_inside >= 1 && most_inside <= 3);
	CHECK_EQ(weft_chan_count(tokens), 3);
	weft_chan_free(tokens);
}

TEST(a_million_tokens_need_no_memory)
{
	weft_chan *ch = weft_chan_new(0, (size_t)-1, "many");

	CHECK(ch != NULL);
	for (int i = 0; i < 1000; i++)
		CHECK_EQ(weft_chan_give(ch, WEFT_NOW), 0);
	CHECK_EQ(weft_chan_count(ch), 1000);
	weft_chan_free(ch);
}

/* --- memory --- */

struct big {
	char bytes[100000];
};

TEST(items_may_be_big)
{
	static struct big in, out;
	weft_chan *ch = weft_chan_new(sizeof(struct big), 2, "big");

	memset(&in, 7, sizeof(in));
	CHECK_EQ(weft_chan_send(ch, &in, WEFT_NEVER), 0);
	CHECK_EQ(weft_chan_recv(ch, &out, WEFT_NEVER), 0);
	CHECK(memcmp(&in, &out, sizeof(in)) == 0);
	weft_chan_free(ch);
}

TEST(there_is_no_channel_for_more_than_memory_holds)
{
	errno = 77;
	CHECK(!weft_chan_new(8, (size_t)-1 / 8, "huge"));
	CHECK(!weft_chan_new((size_t)1 << 40, (size_t)1 << 40, "huge"));
	CHECK_EQ(errno, 77);
	weft_chan_free(NULL);
}

TEST(a_hundred_thousand_channels_leave_no_memory_behind)
{
	size_t before = 0, after;

	for (int round = 0; round < 2; round++) {
		static weft_chan *all[100000];

		before = after = mallinfo2().uordblks;
		for (int i = 0; i < 100000; i++) {
			all[i] = weft_chan_new(sizeof(int), 1, "many");
			CHECK_EQ(weft_chan_send(all[i], &i, WEFT_NOW), 0);
		}
		for (int i = 0; i < 100000; i++)
			weft_chan_free(all[i]);
		after = mallinfo2().uordblks;
	}
	CHECK(after <= before);
}

static void *sends_one(void *arg)
{
	int n = 42;

	CHECK_EQ(weft_chan_send((weft_chan *)arg, &n, WEFT_NEVER), 0);
	return NULL;
}

static void *receives_and_frees(void *arg)
{
	int n = 0;

	CHECK_EQ(weft_chan_recv((weft_chan *)arg, &n, WEFT_NEVER), 0);
	CHECK_EQ(n, 42);
	weft_chan_free(arg);
	return NULL;
}

TEST(whoever_made_the_last_exchange_may_free_it)
{
	for (int i = 0; i < 300; i++) {
		weft_chan *ch = weft_chan_new(sizeof(int), (size_t)i % 2, "once");
		pthread_t a = spawn(i % 3 ? sends_one : receives_and_frees, ch);
		pthread_t b = spawn(i % 3 ? receives_and_frees : sends_one, ch);

		join(a);
		join(b);
	}
}

/* --- mistakes --- */

/* Makes the mistake in a child, and takes what that writes. Has it ended by SIGABRT? */
static bool is_aborted_by(void (*mistake)(void), char *text, size_t bytes)
{
	int pipes[2], status = 0;
	size_t len = 0;
	ssize_t n;
	pid_t pid;

	if (pipe(pipes))
		return false;
	pid = fork();
	if (pid == 0) {
		dup2(pipes[1], 2);
		close(pipes[0]);
		close(pipes[1]);
		signal(SIGABRT, SIG_DFL);
		mistake();
		_exit(0);
	}
	close(pipes[1]);
	while ((n = read(pipes[0], text + len, bytes - 1 - len)) > 0)
		len += (size_t)n;
	text[len] = '\0';
	close(pipes[0]);
	return waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) &&
	       WTERMSIG(status) == SIGABRT;
}

/* The picture is behind it, and what an emulator says itself. */
static void check_said(char *text, const char *message)
{
	if (strchr(text, '\n'))
		strchr(text, '\n')[1] = '\0';
	CHECK_STR_EQ(text, message);
}

static void check_mistake(void (*mistake)(void), const char *message)
{
	char text[8192];

	CHECK(is_aborted_by(mistake, text, sizeof(text)));
	check_said(text, message);
}

static void sends_wrong_size(void)
{
	short n = 1;

	(void)weft_chan_send(weft_chan_new(8, 1, "jobs"), &n, WEFT_NEVER);
}

static void receives_wrong_size(void)
{
	(void)weft_chan_take(weft_chan_new(8, 1, NULL), WEFT_NEVER);
}

static void selects_wrong_size(void)
{
	char c;
	struct weft_op op = WEFT_RECV(weft_chan_new(4, 1, "jobs"), &c);

	(void)weft_select(&op, 1, WEFT_NOW);
}

static void selects_nonsense(void)
{
	struct weft_op op = { .kind = 99 };

	(void)weft_select(&op, 1, WEFT_NOW);
}

static weft_event about_to_wait;
static int nr_yields;

static void *waits_for_ever(void *arg)
{
	int n = 1;

	weft_event_set(&about_to_wait);
	(void)weft_chan_send((weft_chan *)arg, &n, WEFT_NEVER);
	return NULL;
}

static void frees_under_a_waiter(void)
{
	weft_chan *ch = weft_chan_new(sizeof(int), 0, "busy");

	(void)spawn(waits_for_ever, ch);
	weft_event_wait(&about_to_wait, WEFT_NEVER);
	for (int i = 0; i < nr_yields; i++)
		sched_yield();
	weft_chan_free(ch);
}

TEST(a_mistake_ends_the_process_and_is_named)
{
	check_mistake(sends_wrong_size,
		      "weft: weft_chan_send: items of channel \"jobs\" have 8 bytes, not 2\n");
	check_mistake(receives_wrong_size,
		      "weft: weft_chan_recv: items of channel \"(no name)\" have 8 bytes, not 0\n");
	check_mistake(selects_wrong_size,
		      "weft: weft_select: items of channel \"jobs\" have 4 bytes, not 1\n");
	check_mistake(selects_nonsense, "weft: weft_select: there is no operation of kind 99\n");
}

/* A child in which the thread was not waiting yet is none that counts. */
TEST(to_free_it_under_a_waiter_is_a_mistake)
{
	char text[8192];

	for (nr_yields = 1; nr_yields < 1 << 20; nr_yields *= 2)
		if (is_aborted_by(frees_under_a_waiter, text, sizeof(text)))
			break;
	CHECK(strstr(text, "\n  channel busy: 0 of "));
	CHECK(strstr(text, " items\n    sender: thread ") ||
	      strstr(text, " items\n    sender: a thread of the kernel's\n"));
	if (weft_mode(NULL) == WEFT_MODE_ATTACHED)
		CHECK(strstr(text, ": sends to channel busy"));
	check_said(text,
		   "weft: weft_chan_free: channel \"busy\" is freed under waiting threads: 1\n");
}
