// SPDX-License-Identifier: Apache-2.0
/* weft/thread.h: what a thread is given. */
#include <weft/weft.h>

#include "native.h"
#include "spawned.h"
#include "tap.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static int has_name(void *name)
{
	char own[16] = "";

	pthread_getname_np(pthread_self(), own, sizeof(own));
	return strcmp(own, name) == 0;
}

static int has_name_after(void *name)
{
	weft_thread_set_name(name);
	return has_name("a name that is ");
}

TEST(a_name_is_shown_as_far_as_there_is_room)
{
	struct weft_thread_opts opts = { .size = sizeof(opts), .name = "worker" };
	char own[16];

	CHECK_EQ(result_of(has_name, "worker", &opts), 1);
	opts.name = "a name that is too long";
	CHECK_EQ(result_of(has_name, "a name that is ", &opts), 1);
	CHECK_EQ(result_of(has_name_after, "a name that is too long", NULL), 1);
	opts.name = NULL;
	pthread_getname_np(pthread_self(), own, sizeof(own));
	CHECK_EQ(result_of(has_name, own, &opts), 1);
}

static int stack_kib(void *arg)
{
	pthread_attr_t attr;
	size_t bytes = 0;
	void *low;

	(void)arg;
	pthread_getattr_np(pthread_self(), &attr);
	pthread_attr_getstack(&attr, &low, &bytes);
	pthread_attr_destroy(&attr);
	return (int)(bytes >> 10);
}

static int writes(void *arg)
{
	volatile char room[48 << 10];

	(void)arg;
	for (size_t i = sizeof(room); i--;)
		room[i] = 1;
	return room[0];
}

TEST(a_stack_has_room_for_what_was_asked)
{
	struct weft_thread_opts opts = { .size = sizeof(opts), .stack_bytes = 300 << 10 };
	struct weft_thread_opts small = { .size = sizeof(small), .stack_bytes = 64 << 10 };
	struct weft_thread_opts least = { .size = sizeof(least), .stack_bytes = 1 };
	struct weft_thread_opts most = { .size = sizeof(most), .stack_bytes = SIZE_MAX };

	CHECK(result_of(stack_kib, NULL, &opts) >= 300 - 8);
#ifndef __SANITIZE_THREAD__ /* which adds to it */
	CHECK(result_of(stack_kib, NULL, &opts) < 400);
#endif
	CHECK_EQ(result_of(writes, NULL, &small), 1);
	CHECK(result_of(stack_kib, NULL, &least) > 0);
	CHECK_EQ(result_of(returns, NULL, &most), -EINVAL);
	most.stack_bytes = (size_t)1 << 50;
	CHECK_EQ(result_of(returns, NULL, &most), -EAGAIN);
}

static int nice_plus_100(void *arg)
{
	(void)arg;
	return getpriority(PRIO_PROCESS, 0) + 100;
}

TEST(a_nice_value_is_the_threads_own)
{
	struct weft_thread_opts opts = { .size = sizeof(opts), .nice = 7 };
	int own = getpriority(PRIO_PROCESS, 0);

	if (own > 7)
		SKIP("the test itself runs at a higher nice value");
	CHECK_EQ(result_of(nice_plus_100, NULL, &opts), 107);
	CHECK_EQ(result_of(nice_plus_100, NULL, NULL), own + 100);
	CHECK_EQ(getpriority(PRIO_PROCESS, 0), own);
}

TEST(a_nice_value_that_is_not_allowed_is_an_error)
{
	struct weft_thread_opts opts = { .size = sizeof(opts), .nice = -3 };
	weft_thread *t = NULL;
	int status = 0;
	pid_t pid;

	if (geteuid() == 0) {
		pid = fork();
		if (pid == 0) {
			int ret = setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534)
					  ? 1
					  : weft_thread_spawn(returns, NULL, &opts, &t);
			_exit(ret == -EACCES || ret == -EPERM ? 0 : 1);
		}
		waitpid(pid, &status, 0);
		CHECK_EQ(status, 0);
	} else {
		int ret = weft_thread_spawn(returns, NULL, &opts, &t);

		CHECK(ret == -EACCES || ret == -EPERM);
	}
	CHECK(!t);
}

/* Another process sees kernel threads, and the name of a thread that has one for itself. */
static int is_seen_by_the_kernel(void *arg)
{
	char command[100];

	(void)arg;
	snprintf(command, sizeof(command), "grep -q '^its-own$' /proc/%d/task/*/comm", getpid());
	return system(command) == 0;
}

TEST(a_bound_thread_has_a_kernel_thread)
{
	struct weft_thread_opts opts = { .size = sizeof(opts), .name = "its-own" };

	CHECK_EQ(result_of(is_seen_by_the_kernel, NULL, &opts), is_native_run());
	opts.flags = WEFT_THREAD_BOUND;
	CHECK_EQ(result_of(is_seen_by_the_kernel, NULL, &opts), 1);
	CHECK_EQ(weft_thread_spawn(returns, NULL, &opts, NULL), 0);
}

static int has_mask(void *arg)
{
	sigset_t set;

	pthread_sigmask(SIG_SETMASK, NULL, &set);
	return sigismember(&set, SIGUSR2) == (int)(long)arg;
}

TEST(a_thread_begins_with_its_spawners_mask_and_rounding)
{
	sigset_t set, old;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	CHECK_EQ(result_of(has_mask, (void *)0l, NULL), 1);
	pthread_sigmask(SIG_BLOCK, &set, &old);
	CHECK_EQ(result_of(has_mask, (void *)1l, NULL), 1);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	CHECK_EQ(result_of(has_mask, (void *)0l, NULL), 1);
}

TEST(mistakes_in_the_options_are_errors)
{
	struct {
		struct weft_thread_opts opts;
		char newer[16];
	} o = { .opts = { .size = sizeof(o) } };
	struct weft_thread_opts flags = { .size = sizeof(flags), .flags = 1u << 30 };
	struct weft_thread_opts nice = { .size = sizeof(nice), .nice = 20 };
	struct weft_thread_opts none = { 0 };
	weft_thread *t = NULL;

	CHECK_EQ(weft_thread_spawn(NULL, NULL, NULL, &t), -EINVAL);
	CHECK_EQ(weft_thread_spawn(returns, NULL, &none, &t), -EINVAL);
	CHECK_EQ(weft_thread_spawn(returns, NULL, &flags, &t), -EINVAL);
	CHECK_EQ(weft_thread_spawn(returns, NULL, &nice, &t), -EINVAL);
	o.newer[3] = 1;
	CHECK_EQ(weft_thread_spawn(returns, NULL, &o.opts, &t), -EINVAL);
	CHECK(!t);
	o.newer[3] = 0;
	CHECK_EQ(result_of(returns, (void *)9l, &o.opts), 9);
	o.opts.size = offsetof(struct weft_thread_opts, stack_bytes);
	CHECK_EQ(result_of(returns, (void *)9l, &o.opts), 9);
}
