// SPDX-License-Identifier: Apache-2.0
/* weft/thread.h: mistakes with handles. */
#include <weft/weft.h>

#include "spawned.h"
#include "tap.h"

#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void dies_saying(void (*mistake)(void), const char *text)
{
	struct rlimit no_core = { 0, 0 };
	char said[8192] = "";
	size_t len = 0;
	int fds[2], status = 0;
	ssize_t n;
	pid_t pid;

	CHECK_EQ(pipe(fds), 0);
	pid = fork();
	if (pid == 0) {
		setrlimit(RLIMIT_CORE, &no_core);
		signal(SIGABRT, SIG_DFL);
		dup2(fds[1], STDERR_FILENO);
		close(fds[0]);
		close(fds[1]);
		mistake();
		_exit(0);
	}
	close(fds[1]);
	while ((n = read(fds[0], said + len, sizeof(said) - 1 - len)) > 0)
		len += (size_t)n;
	close(fds[0]);
	waitpid(pid, &status, 0);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	if (!CHECK(strstr(said, text)))
		tap_note("it said: %s", said);
}

static void joins_twice(void)
{
	weft_thread *t;

	weft_thread_set_name("main-one");
	weft_thread_spawn(returns, NULL, NULL, &t);
	weft_thread_join(t, NULL, WEFT_NEVER);
	weft_thread_join(t, NULL, WEFT_NEVER);
}

static void joins_twice_with_another_between(void)
{
	weft_thread *t, *other;

	weft_thread_spawn(returns, NULL, NULL, &t);
	weft_thread_join(t, NULL, WEFT_NEVER);
	weft_thread_spawn(waits_for_go, NULL, NULL, &other);
	weft_thread_join(t, NULL, WEFT_NEVER);
}

static int joins_own_handle(void *arg)
{
	(void)arg;
	weft_thread_set_name("selfish");
	return weft_thread_join(weft_thread_self(), NULL, WEFT_NEVER);
}

static void joins_itself(void)
{
	weft_thread *t;

	weft_thread_spawn(joins_own_handle, NULL, NULL, &t);
	weft_thread_join(t, NULL, WEFT_NEVER);
}

static int joins(void *t)
{
	return weft_thread_join(t, NULL, WEFT_NEVER);
}

static void joins_beside_another(void)
{
	struct weft_thread_opts opts = { .size = sizeof(opts), .name = "joined" };
	weft_thread *t, *a, *b;

	sem_init(&ready, 0, 0);
	sem_init(&go, 0, 0);
	weft_thread_spawn(waits_for_go, NULL, &opts, &t);
	opts.name = "joiner";
	weft_thread_spawn(joins, t, &opts, &a);
	weft_thread_spawn(joins, t, &opts, &b);
	weft_thread_join(a, NULL, WEFT_NEVER);
}

static void joins_nobody(void)
{
	weft_thread_join(NULL, NULL, WEFT_NEVER);
}

TEST(mistakes_end_the_process_with_both_names)
{
	dies_saying(joins_twice, "weft: weft_thread_join() by thread 'main-one': the handle 0x");
	dies_saying(joins_twice, "is gone: its thread was joined\n");
	dies_saying(joins_twice_with_another_between, "is gone: its thread was joined\n");
	dies_saying(joins_itself,
		    "weft: weft_thread_join() by thread 'selfish': it joins itself\n");
	dies_saying(joins_beside_another, "by thread 'joiner': thread 'joined' is joined by thread "
					  "'joiner' already\n");
	dies_saying(joins_nobody, "is none\n");
}
