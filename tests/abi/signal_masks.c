// SPDX-License-Identifier: Apache-2.0
/*
 * Signal masks: per thread, inherited by new threads, pending signals wait for unblocking.
 */
#include "check.h"

static volatile sig_atomic_t nr_handled;
static pthread_t handled_by;

static void on_signal(int sig)
{
	(void)sig;
	nr_handled++;
	handled_by = pthread_self();
}

static sigset_t set_of(int a, int b)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, a);
	if (b)
		sigaddset(&set, b);
	return set;
}

static int is_blocked(int sig)
{
	sigset_t now;

	pthread_sigmask(SIG_SETMASK, NULL, &now);
	return sigismember(&now, sig);
}

static int is_pending(int sig)
{
	sigset_t now;

	CHECK_SYS(sigpending(&now));
	return sigismember(&now, sig);
}

static void *inherits(void *arg)
{
	sigset_t set = set_of(SIGUSR2, 0);

	CHECK(is_blocked(SIGUSR1));
	CHECK(!is_blocked(SIGUSR2));
	CHECK(!is_pending(SIGUSR1)); /* what is pending for a thread is not inherited */
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	raise(SIGUSR1);
	raise(SIGUSR2);
	raise(SIGUSR2);
	CHECK(is_pending(SIGUSR1) && is_pending(SIGUSR2));
	CHECK_EQ(nr_handled, 0);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	CHECK_EQ(nr_handled, 1); /* two of the same became one */
	set = set_of(SIGUSR1, 0);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	CHECK_EQ(nr_handled, 2);
	CHECK(pthread_equal(handled_by, pthread_self()));
	CHECK(!is_pending(SIGUSR1) && !is_pending(SIGUSR2));
	nr_handled = 0;
	return arg;
}

static void *suspends(void *arg)
{
	sigset_t all, none;

	sigfillset(&all);
	sigemptyset(&none);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	STORE((int *)arg, 1);
	CHECK_ERRNO(sigsuspend(&none), EINTR);
	CHECK_EQ(nr_handled, 1);
	CHECK(pthread_equal(handled_by, pthread_self()));
	CHECK(is_blocked(SIGUSR1));
	return NULL;
}

int main(void)
{
	sigset_t usr1 = set_of(SIGUSR1, 0), old;
	int is_ready = 0;

	signal(SIGUSR1, on_signal);
	signal(SIGUSR2, on_signal);
	CHECK_PT(pthread_sigmask(SIG_BLOCK, &usr1, &old));
	CHECK(!sigismember(&old, SIGUSR1));
	raise(SIGUSR1);
	for (int i = 0; i < 20; i++)
		join(start(inherits, NULL));
	ok("new threads inherit the mask, not what is pending");

	CHECK(is_pending(SIGUSR1));
	CHECK_EQ(nr_handled, 0);
	CHECK_PT(pthread_sigmask(SIG_SETMASK, &old, NULL));
	CHECK_EQ(nr_handled, 1);
	ok("unblocking delivers at once");

	nr_handled = 0;
	pthread_t t = start(suspends, &is_ready);
	while (!LOAD(&is_ready))
		sched_yield();
	CHECK_PT(pthread_kill(t, SIGUSR1));
	join(t);
	ok("sigsuspend");

	sigset_t all;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	CHECK(!is_blocked(SIGKILL) && !is_blocked(SIGSTOP));
	CHECK_EQ(pthread_sigmask(99, &all, NULL), EINVAL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	ok("KILL and STOP cannot be blocked");
	return finish();
}
