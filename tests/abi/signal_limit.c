// SPDX-License-Identifier: Apache-2.0
/* RLIMIT_SIGPENDING: sigqueue() fails when it is reached, everything else goes on. */
#include "check.h"

#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#define LIMIT 100

static sigset_t set;

static int take_all(void)
{
	struct timespec now = { 0, 0 };
	int nr = 0;

	while (sigtimedwait(&set, NULL, &now) > 0)
		nr++;
	return nr;
}

/* Other processes of the same user count too: at most the limit, and as many come out as went in. */
static int fits(int nr_queued, int nr_beyond)
{
	int nr = take_all();

	return nr_queued > 0 && nr_queued <= LIMIT && nr == nr_queued + nr_beyond;
}

static void *nothing(void *arg)
{
	return arg;
}

int main(void)
{
	struct rlimit limit = { LIMIT, LIMIT };
	union sigval value = { 0 };
	int nr;

	/* A user of its own, if that is allowed: whose signals are counted are ours alone then. */
	if (unshare(CLONE_NEWUSER) == 0)
		CHECK_SYS(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0));
	join(start(nothing, NULL));
	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	CHECK_SYS(setrlimit(RLIMIT_SIGPENDING, &limit));
	for (nr = 0; nr < 10 * LIMIT && sigqueue(getpid(), SIGRTMIN, value) == 0; nr++)
		;
	CHECK_EQ(errno, EAGAIN);
	/* A standard signal has its place, and the threads of the process go on. */
	CHECK_SYS(kill(getpid(), SIGUSR1));
	join(start(nothing, NULL));
	CHECK(fits(nr, 1)); /* SIGUSR1 needs no place in the queue */
	ok("sigqueue");
	for (nr = 0; nr < 10 * LIMIT && pthread_sigqueue(pthread_self(), SIGRTMIN, value) == 0;
	     nr++)
		;
	CHECK(fits(nr, 0));
	ok("pthread_sigqueue");
	for (nr = 0; nr < 10 * LIMIT && pthread_kill(pthread_self(), SIGRTMIN) == 0; nr++)
		;
	CHECK(fits(nr, 0));
	ok("pthread_kill");
	for (nr = 0; nr < 10 * LIMIT && kill(getpid(), SIGRTMIN) == 0; nr++)
		;
	CHECK_EQ(nr, 10 * LIMIT);
	nr = take_all();
	CHECK(nr > 0 && nr <= LIMIT);
	ok("kill never fails");
	return finish();
}
