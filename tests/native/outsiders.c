// SPDX-License-Identifier: Apache-2.0
/*
 * Kernel threads that are not weft's take part: a child of vfork(), which has the program's memory, wakes threads and is woken
 * by them. Before the first thread main is one, too.
 */
#include <weft/weft.h>

#include "native.h"
#include "tap.h"
#include "threads.h"

#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

static weft_event go;
static weft_chan *to_threads, *from_threads, *silent;
static weft_chan *before; /* used by main alone, before there are threads, and by threads */

__attribute__((constructor)) static void early(void)
{
	int n = 7, out = 0;
	struct weft_op op;

	before = weft_chan_new(sizeof(int), 1, "before");
	op = (struct weft_op)WEFT_RECV(before, &out);
	if (weft_select(&op, 1, WEFT_NOW) != -ETIMEDOUT ||
	    weft_chan_recv(before, &out, weft_now() + WEFT_MS) != -ETIMEDOUT ||
	    weft_event_wait(&go, weft_now() + WEFT_MS) != -ETIMEDOUT ||
	    weft_chan_send(before, &n, WEFT_NEVER) != 0)
		_exit(3);
}

static void *receives_what_was_before(void *arg)
{
	int n = 0;

	CHECK_EQ(weft_chan_recv(before, &n, WEFT_NEVER), 0);
	CHECK_EQ(n, 7);
	return arg;
}

TEST(what_was_sent_before_there_were_threads_is_received_by_one)
{
	join(spawn(receives_what_was_before, NULL));
}

static void *waits(void *arg)
{
	CHECK_EQ(weft_event_wait(&go, WEFT_NEVER), 0);
	return arg;
}

static void *answers(void *arg)
{
	int n = 0;

	CHECK_EQ(weft_chan_recv(to_threads, &n, WEFT_NEVER), 0);
	n++;
	CHECK_EQ(weft_chan_send(from_threads, &n, WEFT_NEVER), 0);
	return arg;
}

static void *selects(void *arg)
{
	int n = 0, out = 50;
	struct weft_op ops[] = { WEFT_RECV(silent, &n), WEFT_SEND(from_threads, &out) };

	CHECK_EQ(weft_select(ops, 2, WEFT_NEVER), 1);
	return arg;
}

/* Emulators, valgrind and ThreadSanitizer give it memory of its own. */
static bool shares_memory_with_a_child(void)
{
	static volatile bool is_shared;
	pid_t pid = vfork();

	if (pid == 0) {
		is_shared = true;
		_exit(0);
	}
	return waitpid(pid, NULL, 0) == pid && is_shared;
}

TEST(a_child_with_our_memory_takes_part)
{
	pthread_t t[3];
	int status = 0;
	pid_t pid;

	if (!shares_memory_with_a_child())
		SKIP("vfork() is fork() here");
	to_threads = weft_chan_new(sizeof(int), 0, "to threads");
	from_threads = weft_chan_new(sizeof(int), 0, "from threads");
	silent = weft_chan_new(sizeof(int), 0, "silent");
	t[0] = spawn(waits, NULL);
	t[1] = spawn(answers, NULL);
	t[2] = spawn(selects, NULL);
	pid = vfork();
	if (pid == 0) {
		int n = 30, a = 0, b = 0;

		weft_event_set(&go);
		if (weft_chan_send(to_threads, &n, WEFT_NEVER) ||
		    weft_chan_recv(from_threads, &a, WEFT_NEVER) ||
		    weft_chan_recv(from_threads, &b, WEFT_NEVER))
			_exit(1);
		_exit(a + b);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status));
	CHECK_EQ(WEXITSTATUS(status), 81);
	for (int i = 0; i < 3; i++)
		join(t[i]);
	weft_chan_free(to_threads);
	weft_chan_free(from_threads);
	weft_chan_free(silent);
}
