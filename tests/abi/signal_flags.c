// SPDX-License-Identifier: Apache-2.0
/*
 * Handlers on a thread: nested signals, sa_mask, SA_NODEFER, SA_RESETHAND, nothing lost.
 */
#include "check.h"

/* volatile: raise() is a leaf function to the compiler, which then expects no change from it. */
static volatile int depth, deepest, nr_handled, nr_second, is_masked_inside;

static void on_second(int sig)
{
	(void)sig;
	nr_second++;
}

static void on_nested(int sig)
{
	depth++;
	if (depth > deepest)
		deepest = depth;
	nr_handled++;
	if (nr_handled < 5)
		raise(sig);
	depth--;
}

static void on_first(int sig)
{
	sigset_t now;
	int before = nr_second;

	(void)sig;
	raise(SIGUSR2);
	/* Blocked by sa_mask it waits for our end; otherwise it was handled on the way. */
	pthread_sigmask(SIG_SETMASK, NULL, &now);
	is_masked_inside = sigismember(&now, SIGUSR2);
	CHECK_EQ(nr_second, is_masked_inside ? before : before + 1);
	CHECK(sigismember(&now, SIGUSR1));
	nr_handled++;
}

static void set(int sig, void (*handler)(int), int flags, int masked)
{
	struct sigaction sa = { .sa_handler = handler, .sa_flags = flags };

	sigemptyset(&sa.sa_mask);
	if (masked)
		sigaddset(&sa.sa_mask, masked);
	CHECK_SYS(sigaction(sig, &sa, NULL));
	depth = deepest = nr_handled = nr_second = 0;
}

static void *tries_all(void *arg)
{
	struct sigaction sa;

	set(SIGUSR2, on_second, 0, 0);
	set(SIGUSR1, on_first, 0, 0);
	raise(SIGUSR1);
	CHECK_EQ(nr_handled, 1);
	CHECK_EQ(nr_second, 1);
	CHECK_EQ(is_masked_inside, 0);
	ok("a second signal interrupts the first handler");

	set(SIGUSR1, on_first, 0, SIGUSR2);
	raise(SIGUSR1);
	CHECK_EQ(nr_second, 1);
	CHECK_EQ(is_masked_inside, 1);
	ok("sa_mask makes it wait for the end of the handler");

	set(SIGUSR1, on_nested, 0, 0);
	raise(SIGUSR1);
	CHECK_EQ(nr_handled, 5);
	CHECK_EQ(deepest, 1);
	ok("the same signal waits for the end of its handler");

	set(SIGUSR1, on_nested, SA_NODEFER, 0);
	raise(SIGUSR1);
	CHECK_EQ(nr_handled, 5);
	CHECK_EQ(deepest, 5);
	ok("SA_NODEFER nests");

	set(SIGUSR1, on_second, SA_RESETHAND, 0);
	raise(SIGUSR1);
	CHECK_EQ(nr_second, 1);
	CHECK_SYS(sigaction(SIGUSR1, NULL, &sa));
	CHECK(sa.sa_handler == SIG_DFL);
	ok("SA_RESETHAND resets");

	set(SIGUSR1, on_second, SA_RESTART | SA_NODEFER, SIGUSR2);
	CHECK_SYS(sigaction(SIGUSR1, NULL, &sa));
	CHECK(sa.sa_handler == on_second);
	CHECK_EQ(sa.sa_flags & (SA_RESTART | SA_NODEFER | SA_RESETHAND), SA_RESTART | SA_NODEFER);
	CHECK(sigismember(&sa.sa_mask, SIGUSR2));
	signal(SIGUSR1, SIG_IGN);
	raise(SIGUSR1);
	CHECK_EQ(nr_second, 0);
	CHECK_ERRNO(sigaction(SIGKILL, &sa, NULL), EINVAL);
	CHECK_ERRNO(sigaction(65, &sa, NULL), EINVAL);
	ok("what was set can be read back; ignored means ignored");
	return arg;
}

int main(void)
{
	tries_all(NULL);
	join(start(tries_all, NULL));
	return finish();
}
