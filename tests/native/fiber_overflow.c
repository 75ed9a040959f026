// SPDX-License-Identifier: Apache-2.0
/* A fiber that overflows its stack is reported by its name; the program makes itself anew for it, as a fork child is native. */
#include <weft/fiber.h>

#include "native.h"
#include "tap.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void *does_nothing(void *arg)
{
	return arg;
}

static int recurses(int n)
{
	volatile char use[300];

	use[0] = (char)n;
	return n < 0 ? 0 : recurses(n + 1) + use[0];
}

static void *overflows(void *arg)
{
	return (void *)(long)recurses(arg != NULL);
}

static void *yields(void *arg)
{
	return weft_fiber_yield(arg);
}

/* On a thread that has a suspended fiber as well. */
static void *overflows_in_a_fiber(void *arg)
{
	const struct weft_fiber_opts opts = { sizeof(opts), "deep", 64 << 10 };

	(void)pthread_setname_np(pthread_self(), "diver");
	(void)weft_fiber_resume(weft_fiber_new(yields, NULL), NULL);
	return weft_fiber_resume(weft_fiber_new(overflows, &opts), arg);
}

static void *writes_below(void *arg)
{
	void *low, *high, *sp;

	(void)weft_fiber_resume(weft_fiber_new(yields, NULL), NULL);
	weft_fiber_stack(weft_fiber_new(yields, NULL), &low, &high, &sp);
	*((volatile char *)low - 1) = 1;
	return arg;
}

/* The thread's own stack, while there are fibers. */
static void *overflows_beside(void *arg)
{
	(void)weft_fiber_resume(weft_fiber_new(yields, NULL), NULL);
	return overflows(arg);
}

__attribute__((constructor)) static void be_the_victim(void)
{
	const char *victim = getenv("WEFT_TEST_VICTIM");
	const struct rlimit none = { 0, 0 };
	pthread_attr_t attr;
	pthread_t t;

	if (!victim)
		return;
	(void)setrlimit(RLIMIT_CORE, &none);
	(void)pthread_attr_init(&attr);
	(void)pthread_attr_setstacksize(&attr, 256 << 10);
	(void)pthread_create(&t, NULL, does_nothing, NULL);
	(void)pthread_join(t, NULL);
	(void)pthread_create(&t, &attr,
			     *victim == 'f'   ? overflows_in_a_fiber
			     : *victim == 'b' ? writes_below
					      : overflows_beside,
			     NULL);
	(void)pthread_join(t, NULL);
	_exit(0);
}

static void check_report(const char *victim, const char *first, const char *second)
{
	char said[4096] = "", *at;
	size_t len = 0;
	int to[2], status = 0;
	ssize_t n;
	pid_t pid;

	CHECK_EQ(pipe(to), 0);
	pid = fork();
	if (pid == 0) {
		(void)dup2(to[1], STDERR_FILENO);
		(void)setenv("WEFT_TEST_VICTIM", victim, 1);
		(void)execl("/proc/self/exe", "fiber_overflow", (char *)NULL);
		_exit(9);
	}
	close(to[1]);
	while (len < sizeof(said) - 1 && (n = read(to[0], said + len, sizeof(said) - 1 - len)) > 0)
		len += (size_t)n;
	close(to[0]);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
	at = strstr(said, first);
	if (!is_native_run() && !CHECK(at && strstr(at, second)))
		tap_note("%s", said);
}

TEST(an_overflow_is_the_fibers)
{
	SKIP_IF_EMULATED("qemu does not start a program of the same family");
	check_report("fiber", "weft: fiber \"deep\" of thread ",
		     "\"diver\" has overflowed its stack of 64 KiB (0x");
	check_report("fiber", "try a larger one: stack_bytes of weft_fiber_new()", "\n");
}

TEST(an_overflow_of_the_threads_own_stack_is_not_a_fibers)
{
	SKIP_IF_EMULATED("qemu does not start a program of the same family");
	check_report("thread", "weft: thread ", " has overflowed its stack of 256 KiB (0x");
}

TEST(below_a_stack_lies_a_guard)
{
	SKIP_IF_EMULATED("qemu does not start a program of the same family");
	check_report("below", "", "");
}
