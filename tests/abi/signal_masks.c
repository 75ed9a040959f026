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

/* Each way to change the mask, from each start. */
static void *changes_mask(void *arg)
{
	static const struct {
		int how, usr1, usr2, want1, want2;
	} rows[] = {
		{ SIG_BLOCK, 1, 0, 1, 0 },   { SIG_BLOCK, 0, 1, 0, 1 },
		{ SIG_UNBLOCK, 1, 0, 0, 1 }, { SIG_UNBLOCK, 0, 1, 1, 0 },
		{ SIG_SETMASK, 1, 0, 1, 0 }, { SIG_SETMASK, 0, 0, 0, 0 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		sigset_t set, before, old;

		sigemptyset(&before);
		if (rows[i].how == SIG_UNBLOCK) {
			sigaddset(&before, SIGUSR1);
			sigaddset(&before, SIGUSR2);
		}
		sigaddset(&before, SIGWINCH);
		CHECK_PT(pthread_sigmask(SIG_SETMASK, &before, NULL));
		sigemptyset(&set);
		if (rows[i].usr1)
			sigaddset(&set, SIGUSR1);
		if (rows[i].usr2)
			sigaddset(&set, SIGUSR2);
		CHECK_PT(pthread_sigmask(rows[i].how, &set, &old));
		CHECK(sigismember(&old, SIGWINCH));
		CHECK_EQ(sigismember(&old, SIGUSR1), rows[i].how == SIG_UNBLOCK);
		CHECK_EQ(is_blocked(SIGUSR1), rows[i].want1);
		CHECK_EQ(is_blocked(SIGUSR2), rows[i].want2);
		CHECK_EQ(is_blocked(SIGWINCH), rows[i].how != SIG_SETMASK);
		CHECK(!is_blocked(SIGHUP));
	}
	return arg;
}

/* A signal that is ignored while it is pending is gone, and does not come back with a handler. */
static void *ignores_pending(void *arg)
{
	sigset_t usr1 = set_of(SIGUSR1, 0), usr2 = set_of(SIGUSR2, 0);

	nr_handled = 0;
	CHECK_PT(pthread_sigmask(SIG_BLOCK, &usr1, NULL));
	CHECK_PT(pthread_sigmask(SIG_BLOCK, &usr2, NULL));
	raise(SIGUSR1);
	kill(getpid(), SIGUSR2);
	CHECK(is_pending(SIGUSR1));
	signal(SIGUSR1, SIG_IGN);
	signal(SIGUSR2, SIG_IGN);
	CHECK(!is_pending(SIGUSR1) && !is_pending(SIGUSR2));
	signal(SIGUSR1, on_signal);
	signal(SIGUSR2, on_signal);
	CHECK_PT(pthread_sigmask(SIG_UNBLOCK, &usr1, NULL));
	CHECK_PT(pthread_sigmask(SIG_UNBLOCK, &usr2, NULL));
	CHECK_EQ(nr_handled, 0);
	return arg;
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

	join(start(changes_mask, NULL));
	ok("block, unblock, set");
	CHECK_PT(pthread_sigmask(SIG_SETMASK, NULL, &old));
	sigset_t usr2 = set_of(SIGUSR2, 0), was;
	CHECK_PT(pthread_sigmask(SIG_BLOCK, &usr2, &was));
	join(start(ignores_pending, NULL));
	CHECK_PT(pthread_sigmask(SIG_SETMASK, &was, NULL));
	CHECK_EQ(nr_handled, 0);
	ok("ignored while it is pending");
	struct sigaction act = { .sa_handler = on_signal };
	sigfillset(&act.sa_mask);
	CHECK_SYS(sigaction(SIGUSR1, &act, NULL));
	CHECK_SYS(sigaction(SIGUSR1, NULL, &act));
	CHECK(sigismember(&act.sa_mask, SIGUSR2));
	CHECK(!sigismember(&act.sa_mask, SIGKILL) && !sigismember(&act.sa_mask, SIGSTOP));
	ok("nor in a handler KILL and STOP");

	sigset_t all;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	CHECK(!is_blocked(SIGKILL) && !is_blocked(SIGSTOP));
	CHECK_EQ(pthread_sigmask(99, &all, NULL), EINVAL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	ok("KILL and STOP cannot be blocked");
	return finish();
}
