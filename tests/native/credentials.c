// SPDX-License-Identifier: Apache-2.0
/*
 * Users and groups beside pthreads that run nothing: libc has each pthread change them, and waits for it.
 */
#include "native.h"
#include "tap.h"

#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>
#include <weft/weft.h>

#define CROWD 8
#define NOBODY 65534

static const size_t stacks[] = { 0, 60 << 10, 200 << 10 };

static int returns(void *arg)
{
	return arg ? *(int *)arg : 0;
}

static int exits(void *arg)
{
	pthread_exit(arg);
}

static void run_crowd(weft_fn *fn, size_t stack_bytes)
{
	const struct weft_thread_opts opts = { sizeof(opts), .stack_bytes = stack_bytes };
	weft_thread *crowd[CROWD];

	for (int i = 0; i < CROWD; i++)
		CHECK_EQ(weft_thread_spawn(fn, NULL, &opts, &crowd[i]), 0);
	for (int i = 0; i < CROWD; i++)
		CHECK_EQ(weft_thread_join(crowd[i], NULL, WEFT_NEVER), 0);
}

static void set_all(void)
{
	CHECK_EQ(setuid(getuid()), 0);
	CHECK_EQ(setgid(getgid()), 0);
	CHECK_EQ(setresuid(-1, getuid(), -1), 0);
	CHECK_EQ(setresgid(-1, getgid(), -1), 0);
}

TEST(are_set_while_pthreads_rest)
{
	for (int round = 0; round < 3; round++)
		for (size_t i = 0; i < sizeof(stacks) / sizeof(stacks[0]); i++) {
			run_crowd(returns, stacks[i]);
			set_all();
		}
}

/* One pthread stays, which sees to it that those that were spawned begin. */
TEST(are_set_while_none_is_left)
{
	for (int round = 0; round < 3; round++) {
		run_crowd(exits, 0);
		set_all();
	}
}

static int gains_root(void *arg)
{
	(void)arg;
	return geteuid() != NOBODY || getegid() != NOBODY || setuid(0) == 0 || setgid(0) == 0;
}

static int drops_them(void)
{
	weft_thread *t;
	int result = 2;

	run_crowd(returns, 0);
	if (setresgid(NOBODY, NOBODY, NOBODY) || setresuid(NOBODY, NOBODY, NOBODY))
		return 3;
	for (int i = 0; i < CROWD; i++)
		if (weft_thread_spawn(gains_root, NULL, NULL, &t) ||
		    weft_thread_join(t, &result, WEFT_NEVER) || result)
			return 1;
	return gains_root(NULL);
}

TEST(are_dropped_for_whatever_begins_later)
{
	int status = -1;
	pid_t pid;

	if (geteuid() != 0)
		SKIP("only root has something to drop");
	pid = fork();
	if (pid == 0)
		_exit(drops_them());
	waitpid(pid, &status, 0);
	CHECK_EQ(status, 0);
}

static uint32_t is_over;

static void *sets_all_the_time(void *arg)
{
	while (!__atomic_load_n(&is_over, __ATOMIC_ACQUIRE)) {
		CHECK_EQ(setgid(getgid()), 0);
		sched_yield(); /* it holds a lock of libc's all the time, which is not fair */
	}
	return arg;
}

/* A pthread is called while the signal is on its way to it. */
TEST(are_set_while_pthreads_are_called)
{
	const int rounds = is_native_run() ? 20 : 200;
	pthread_t setter;

	__atomic_store_n(&is_over, 0, __ATOMIC_RELEASE);
	CHECK_EQ(pthread_create(&setter, NULL, sets_all_the_time, NULL), 0);
	for (int round = 0; round < rounds; round++) {
		for (int i = 0; i < 10; i++) {
			int number = i, result = -1;
			weft_thread *t;

			CHECK_EQ(weft_thread_spawn(returns, &number, NULL, &t), 0);
			CHECK_EQ(weft_thread_join(t, &result, WEFT_NEVER), 0);
			CHECK_EQ(result, i);
		}
		run_crowd(returns, stacks[round % 3]);
		if (round % 10 == 0)
			run_crowd(exits, 0);
	}
	__atomic_store_n(&is_over, 1, __ATOMIC_RELEASE);
	pthread_join(setter, NULL);
}
