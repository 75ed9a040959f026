// SPDX-License-Identifier: Apache-2.0
/*
 * Follows by behaviour reports of faults in other systems: what must not happen. Each case names the report.
 */
#include <weft/weft.h>

#include "native.h"
#include "tap.h"
#include "threads.h"

#include <dirent.h>
#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* --- brpc#721: an interruption that the first wait consumes leaves a loop that never ends --- */

static weft_event never;
static weft_event is_there;

static int waits_until_it_hears_it_thrice(void *arg)
{
	weft_chan *ch = arg;
	int nr = 0, n;

	weft_event_set(&is_there);
	while (nr < 3) {
		struct weft_op ops[] = { WEFT_ON(&never), WEFT_RECV(ch, &n) };
		int error = nr % 2 ? weft_event_wait(&never, WEFT_NEVER)
				   : weft_select(ops, 2, WEFT_NEVER);

		if (!CHECK_EQ(error, -ECANCELED))
			return error;
		nr++;
	}
	return nr;
}

TEST(a_loop_that_ignores_a_cancellation_is_told_again)
{
	for (int i = 0; i < 100; i++) {
		weft_chan *ch = weft_chan_new(sizeof(int), 0, "test");
		weft_thread *t;
		int result = 0;

		weft_event_clear(&is_there);
		CHECK_EQ(weft_thread_spawn(waits_until_it_hears_it_thrice, ch, NULL, &t), 0);
		if (i % 2)
			CHECK_EQ(weft_event_wait(&is_there, WEFT_NEVER), 0);
		weft_thread_cancel(t);
		CHECK_EQ(weft_thread_join(t, &result, WEFT_NEVER), 0);
		CHECK_EQ(result, 3);
		weft_chan_free(ch);
	}
}

/* --- brpc#548: a lock that ends with an error which nobody looks at lets two in --- */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int holders;

static int locks_whatever_happens(void *arg)
{
	(void)arg;
	for (int i = 0; i < 200; i++) {
		pthread_mutex_lock(&mutex);
		CHECK_EQ(holders++, 0);
		if (i % 8 == 0)
			weft_thread_yield();
		holders--;
		pthread_mutex_unlock(&mutex);
	}
	return 0;
}

TEST(cancelled_threads_take_a_lock_one_at_a_time)
{
	for (int i = 0; i < 5; i++) {
		weft_group g = { .name = "lock" };

		for (int k = 0; k < 8; k++)
			CHECK_EQ(weft_group_go(&g, locks_whatever_happens, NULL), 0);
		weft_group_cancel(&g);
		CHECK_EQ(weft_group_wait(&g), 0);
	}
}

/* --- rayon#592: who waits for a task while it holds a lock is given another one that wants the same lock --- */

static void does_little(void *arg)
{
	atomic_fetch_add((atomic_int *)arg, 1);
	weft_thread_yield();
}

static void forks_under_the_lock(void *arg)
{
	weft_task t;

	pthread_mutex_lock(&mutex);
	CHECK_EQ(holders++, 0);
	weft_task_fork(&t, does_little, arg);
	weft_thread_yield();
	weft_task_join(&t);
	holders--;
	pthread_mutex_unlock(&mutex);
}

TEST(a_join_under_a_lock_runs_nothing_that_wants_the_lock)
{
	atomic_int nr = 0;
	weft_task t[50];

	for (int i = 0; i < 50; i++)
		weft_task_fork(&t[i], forks_under_the_lock, &nr);
	for (int i = 50; i--;)
		weft_task_join(&t[i]);
	CHECK_EQ(atomic_load(&nr), 50);
}

/* --- curl#18532: what a cancelled thread had open is lost --- */

/* Of all descriptors, libc has some for a moment: where malloc() makes an arena, it reads how many processors there are. */
static int count_sockets(void)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;
	int nr = 0;

	while (dir && (entry = readdir(dir))) {
		char kind[8] = "";

		if (readlinkat(dirfd(dir), entry->d_name, kind, sizeof(kind) - 1) > 0)
			nr += !strcmp(kind, "socket:");
	}
	if (dir)
		closedir(dir);
	return nr;
}

static atomic_int nr_blocks;

/* A look-up as it may be written: it knows nothing of cancellation, but looks at errors. */
static int looks_up(void *arg)
{
	int fds[2], error = 0;
	char *answer = malloc(512);

	(void)arg;
	if (!answer)
		return -ENOMEM;
	atomic_fetch_add(&nr_blocks, 1);
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds)) {
		error = -errno;
	} else {
		if (is_native_run())
			error = weft_event_wait(&never, WEFT_NEVER);
		else if (read(fds[0], answer, 512) < 0)
			error = -errno;
		close(fds[0]);
		close(fds[1]);
	}
	atomic_fetch_sub(&nr_blocks, 1);
	free(answer);
	return error;
}

TEST(a_cancelled_look_up_gives_back_what_it_had)
{
	int before = 0;

	for (int i = 0; i < 30; i++) {
		weft_group g = { .name = "look-up" };

		if (i == 1)
			before = count_sockets();
		for (int k = 0; k < 10; k++)
			CHECK_EQ(weft_group_go(&g, looks_up, NULL), 0);
		if (i % 2)
			weft_sleep_until(weft_now() + WEFT_MS);
		weft_group_cancel(&g);
		CHECK_EQ(weft_group_wait(&g), -ECANCELED);
		CHECK_EQ(atomic_load(&nr_blocks), 0);
	}
	CHECK_EQ(count_sockets(), before);
}

/* --- tokio#4853: a function that blocks cannot be stopped, and keeps the end of the program --- */

static int blocks_in_read(void *arg)
{
	char c;
	ssize_t n = read(*(int *)arg, &c, 1);

	return n < 0 ? -errno : (int)n;
}

TEST(a_blocked_read_ends_when_its_thread_is_cancelled)
{
	weft_thread *t;
	int fds[2], result = 0;

	if (is_native_run())
		SKIP("natively only weft's own functions are reached");
	CHECK_EQ(pipe(fds), 0);
	for (int i = 0; i < 50; i++) {
		CHECK_EQ(weft_thread_spawn(blocks_in_read, &fds[0], NULL, &t), 0);
		CHECK_EQ(weft_thread_join(t, NULL, i % 2 ? WEFT_NOW : weft_now() + WEFT_MS),
			 -ETIMEDOUT);
		weft_thread_cancel(t);
		CHECK_EQ(weft_thread_join(t, &result, WEFT_NEVER), 0);
		CHECK_EQ(result, -ECANCELED);
	}
	close(fds[0]);
	close(fds[1]);
}

/* --- trio#264: who yields within a time limit leaves it to whoever goes on --- */

static void *yields_within_a_limit(void *first)
{
	WEFT_SCOPE(s, WEFT_NOW);

	for (int i = 0; i < 3; i++) {
		CHECK_EQ(weft_event_wait(&never, WEFT_NEVER), -ETIMEDOUT);
		weft_fiber_yield(first);
	}
	return first;
}

TEST(a_limit_in_a_generator_is_not_its_callers)
{
	weft_fiber *a = weft_fiber_new(yields_within_a_limit, NULL),
		   *b = weft_fiber_new(yields_within_a_limit, NULL);

	for (int i = 0; i < 4; i++) {
		WEFT_SCOPE(mine, WEFT_NEVER);

		weft_fiber_resume(a, NULL);
		CHECK_EQ(weft_scope_check(), 0);
		weft_fiber_resume(b, NULL);
		CHECK_EQ(weft_event_wait(&never, weft_now() + WEFT_MS / 10), -ETIMEDOUT);
		CHECK_EQ(weft_scope_close(&mine), 0);
	}
	CHECK(weft_fiber_is_done(a) && weft_fiber_is_done(b));
	weft_fiber_free(a);
	weft_fiber_free(b);
}
