// SPDX-License-Identifier: Apache-2.0
/* No room for another pthread: a spawn is refused, or its thread begins when another one has ended. */
#include "native.h"
#include "tap.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <weft/weft.h>

#define ROOM_BYTES (200ul << 20) /* two dozen stacks */
#define MOST 1000

static sem_t begun;
static weft_event let_go[MOST];
static weft_thread *threads[MOST];

static int waits(void *arg)
{
	sem_post(&begun);
	return weft_event_wait(arg, WEFT_NEVER);
}

static int spawn(int i)
{
	weft_event_clear(&let_go[i]);
	return weft_thread_spawn(waits, &let_go[i], NULL, &threads[i]);
}

static void end(int i)
{
	int result = 1;

	weft_event_set(&let_go[i]);
	CHECK_EQ(weft_thread_join(threads[i], &result, WEFT_NEVER), 0);
	CHECK_EQ(result, 0);
}

static size_t mapped_bytes(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	size_t pages = 0;

	if (!f || fscanf(f, "%zu", &pages) != 1)
		pages = 0;
	if (f)
		fclose(f);
	return pages * 4096;
}

static void limit_to(size_t room)
{
	struct rlimit limit;

	getrlimit(RLIMIT_AS, &limit);
	limit.rlim_cur = mapped_bytes() + room;
	CHECK_EQ(setrlimit(RLIMIT_AS, &limit), 0);
}

static void lift(void)
{
	struct rlimit limit;

	getrlimit(RLIMIT_AS, &limit);
	limit.rlim_cur = limit.rlim_max;
	CHECK_EQ(setrlimit(RLIMIT_AS, &limit), 0);
}

#define TREE_ROOM_BYTES (30ul << 20)
#define TREE_DEPTH 7

static int nr_nodes, nr_inline;

/* Each joins two; one that is refused is a call. */
static int grows(void *arg)
{
	int depth = *(int *)arg, below = depth - 1, nr = 0;
	weft_thread *children[2];

	__atomic_fetch_add(&nr_nodes, 1, __ATOMIC_RELAXED);
	if (depth == 0)
		return 0;
	for (int i = 0; i < 2; i++) {
		if (weft_thread_spawn(grows, &below, NULL, &children[nr]) == 0) {
			nr++;
		} else {
			__atomic_fetch_add(&nr_inline, 1, __ATOMIC_RELAXED);
			grows(&below);
		}
	}
	while (nr)
		CHECK_EQ(weft_thread_join(children[--nr], NULL, WEFT_NEVER), 0);
	return 0;
}

/* The first case: no pthread rests yet. */
TEST(a_tree_of_joins_grows_as_far_as_there_is_room)
{
	weft_thread *t;
	int depth = 0;

	if (is_native_run())
		SKIP("libc's own limits");
	CHECK_EQ(weft_thread_spawn(grows, &depth, NULL, &t), 0);
	CHECK_EQ(weft_thread_join(t, NULL, WEFT_NEVER), 0);
	limit_to(TREE_ROOM_BYTES);
	depth = TREE_DEPTH;
	for (int round = 0; round < 20; round++) {
		nr_nodes = 0;
		grows(&depth);
		CHECK_EQ(nr_nodes, (2 << TREE_DEPTH) - 1);
	}
	CHECK(nr_inline > 0);
	lift();
}

/* How many there are when one is refused, each of which has begun. */
static int fill(void)
{
	int nr = 0, ret;

	/* One that has begun, so that the runtime has what it needs. */
	CHECK_EQ(spawn(nr++), 0);
	sem_wait(&begun);
	limit_to(ROOM_BYTES);
	while (nr < MOST - 8 && (ret = spawn(nr)) == 0) {
		sem_wait(&begun);
		nr++;
	}
	CHECK_EQ(ret, -EAGAIN);
	return nr;
}

TEST(a_thread_without_room_is_refused_and_nothing_else_is_lost)
{
	int nr;

	if (is_native_run())
		SKIP("libc's own limits");
	sem_init(&begun, 0, 0);
	nr = fill();
	CHECK(nr > 3);
	CHECK_EQ(spawn(nr), -EAGAIN);
	end(--nr);
	CHECK_EQ(spawn(nr), 0); /* there is room for one again */
	sem_wait(&begun);
	nr++;
	while (nr)
		end(--nr);
	lift();
}

/* Two pthreads rest, and are called for the first two; those that are queued before the second has come wait for room. */
TEST(what_is_queued_without_room_begins_when_another_ends)
{
	if (is_native_run())
		SKIP("libc's own limits");
	sem_init(&begun, 0, 0);
	for (int round = 0; round < 20; round++) {
		int nr = fill(), nr_old, nr_new = 0;

		CHECK(nr > 8);
		end(--nr);
		end(--nr);
		nr_old = nr;
		for (int i = 0; i < 6; i++) {
			int ret = spawn(nr_old + nr_new);

			CHECK(ret == 0 || ret == -EAGAIN);
			nr_new += ret == 0;
		}
		CHECK(nr_new >= 2);
		for (int i = 0; i < nr_new; i++) {
			if (i >= 2)
				end(--nr);
			sem_wait(&begun);
		}
		for (int i = 0; i < nr_new; i++)
			end(nr_old + i);
		while (nr)
			end(--nr);
		lift();
	}
}

#define CROWD 4

static const struct weft_thread_opts small = { sizeof(small), .stack_bytes = 200 << 10 };

static int exits(void *arg)
{
	pthread_exit(NULL);
}

static int returns_7(void *arg)
{
	return 7;
}

/* The first two of a crowd end their pthreads. Each is refused or runs, however much room there is. */
static void try_crowd(size_t room, bool is_last_first)
{
	weft_thread *crowd[CROWD];
	bool is_there[CROWD];

	limit_to(room);
	for (int i = 0; i < CROWD; i++) {
		int ret = weft_thread_spawn(i < 2 ? exits : returns_7, NULL, &small, &crowd[i]);

		CHECK(ret == 0 || ret == -EAGAIN);
		is_there[i] = ret == 0;
	}
	for (int i = 0; i < CROWD; i++) {
		int at = is_last_first ? CROWD - 1 - i : i, result = 1;

		if (!is_there[at])
			continue;
		CHECK_EQ(weft_thread_join(crowd[at], &result, WEFT_NEVER), 0);
		CHECK_EQ(result, at < 2 ? -ECANCELED : 7);
	}
	lift();
}

/* The library that pthread_exit() and pthread_cancel() load. */
static void load_what_exits_need(void)
{
	weft_thread *t;

	CHECK_EQ(weft_thread_spawn(exits, NULL, &small, &t), 0);
	CHECK_EQ(weft_thread_join(t, NULL, WEFT_NEVER), 0);
}

static void try_crowds(bool is_last_first)
{
	load_what_exits_need();
	for (size_t room = 256 << 10; room < 4 << 20; room += 64 << 10)
		try_crowd(room, is_last_first);
}

TEST(what_is_queued_begins_where_all_pthreads_end)
{
	if (is_native_run())
		SKIP("libc's own limits");
	try_crowds(false);
}

/* Those that have ended are not joined yet. */
TEST(what_is_queued_begins_before_others_are_joined)
{
	if (is_native_run())
		SKIP("libc's own limits");
	try_crowds(true);
}

static int sets(void *arg)
{
	weft_event_set(arg);
	return 0;
}

/* Those that run wait for one that is stuck, and then there is room again. */
static void find_room_again(void)
{
	int nr = fill(), nr_old, nr_new = 0;

	end(--nr);
	end(--nr);
	nr_old = nr;
	weft_event_clear(&let_go[0]);
	for (int i = 0; i < 6; i++) {
		int ret = weft_thread_spawn(i < 5 ? waits : sets, &let_go[0], NULL,
					    &threads[nr_old + nr_new]);

		if (ret < 0 && i == 5)
			weft_event_set(&let_go[0]);
		nr_new += ret == 0;
	}
	/* The second one has looked for a pthread for the third. */
	sem_wait(&begun);
	sem_wait(&begun);
	lift();
	weft_event_wait(&let_go[0], WEFT_NEVER);
	while (nr_new)
		end(nr_old + --nr_new);
	while (nr)
		end(--nr);
	while (sem_trywait(&begun) == 0)
		;
}

TEST(what_is_queued_begins_when_there_is_room_again)
{
	if (is_native_run())
		SKIP("libc's own limits");
	sem_init(&begun, 0, 0);
	for (int round = 0; round < 8; round++)
		find_room_again();
}

/* There is no maker of the parent's. */
TEST(what_is_queued_begins_in_a_fork_child)
{
	int status = -1;
	pid_t pid;

	if (is_native_run())
		SKIP("libc's own limits");
	sem_init(&begun, 0, 0);
	find_room_again();
	pid = fork();
	if (pid == 0) {
		alarm(60);
		for (int round = 0; round < 8; round++)
			find_room_again();
		_exit(0);
	}
	waitpid(pid, &status, 0);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

#define CLASS_ROOM_BYTES (160ul << 20)
#define LIBC_KEEPS_BYTES (40ul << 20) /* of stacks */

/* How many with such a stack begin, until one is refused; all wait for one another's end. */
static int fill_class(size_t stack_bytes)
{
	const struct weft_thread_opts opts = { sizeof(opts), .stack_bytes = stack_bytes };
	static weft_thread *all[4 * MOST];
	int nr = 0;

	weft_event_clear(&let_go[0]);
	while (nr < 4 * MOST && weft_thread_spawn(waits, &let_go[0], &opts, &all[nr]) == 0) {
		sem_wait(&begun);
		nr++;
	}
	weft_event_set(&let_go[0]);
	for (int i = 0; i < nr; i++)
		CHECK_EQ(weft_thread_join(all[i], NULL, WEFT_NEVER), 0);
	return nr;
}

TEST(pthreads_that_rest_give_way_to_those_of_another_size)
{
	const size_t small_bytes = 60 << 10, large_bytes = 250 << 10;
	const int nr_large = (int)((CLASS_ROOM_BYTES - LIBC_KEEPS_BYTES) / large_bytes);

	if (is_native_run())
		SKIP("libc's own limits");
	sem_init(&begun, 0, 0);
	CHECK_EQ(spawn(1), 0); /* the runtime has what it needs */
	sem_wait(&begun);
	end(1);
	limit_to(CLASS_ROOM_BYTES);
	CHECK(fill_class(small_bytes) > 1000);
	CHECK(fill_class(large_bytes) > nr_large / 2);
	CHECK(fill_class(small_bytes) > 500);
	lift();
}

static bool is_reached;

/* Those that rest give way meanwhile. */
static void *spawns_while_cancelled(void *arg)
{
	const struct weft_thread_opts opts = { sizeof(opts), .stack_bytes = 250 << 10 };
	weft_thread *all[MOST];
	int nr = 0;

	pthread_cancel(pthread_self());
	while (nr < MOST && weft_thread_spawn(waits, &let_go[0], &opts, &all[nr]) == 0)
		nr++;
	is_reached = true;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	weft_event_set(&let_go[0]);
	while (nr)
		CHECK_EQ(weft_thread_join(all[--nr], NULL, WEFT_NEVER), 0);
	return arg;
}

TEST(a_spawn_without_room_is_no_cancellation_point)
{
	pthread_t spawner;

	if (is_native_run())
		SKIP("libc's own limits");
	sem_init(&begun, 0, 0);
	load_what_exits_need();
	limit_to(CLASS_ROOM_BYTES);
	CHECK(fill_class(60 << 10) > 500);
	weft_event_clear(&let_go[0]);
	is_reached = false;
	CHECK_EQ(pthread_create(&spawner, NULL, spawns_while_cancelled, NULL), 0);
	pthread_join(spawner, NULL);
	CHECK(is_reached);
	lift();
}
