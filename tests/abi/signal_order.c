// SPDX-License-Identifier: Apache-2.0
/*
 * The order in which several pending signals are handled. The kernel makes a frame for each before the first
 * handler runs, so that of the last runs first; what is pending for the thread comes before what is pending
 * for the process; and every one of them runs before sigsuspend() or ppoll() returns.
 *
 * The order is printed: the plain kernel says what is right.
 */
#include "check.h"

#include <poll.h>

#define NR 6

static int seen[64], nr_seen;

static void handler(int sig)
{
	seen[nr_seen++] = sig;
}

static void show(const char *what)
{
	printf("%s:", what);
	for (int i = 0; i < nr_seen; i++)
		printf(" %d", seen[i]);
	printf("\n");
	nr_seen = 0;
}

static int sigs[NR];

static void send_all(int to_thread, int to_process)
{
	for (int i = NR - 1; i >= 0; i--) {
		if (to_process)
			kill(getpid(), sigs[i]);
		if (to_thread)
			raise(sigs[i]);
	}
}

static void *body(void *arg)
{
	struct sigaction act = { .sa_handler = handler };
	struct timespec now = { 0, 0 }, second = { 1, 0 };
	struct pollfd none = { -1, 0, 0 };
	sigset_t set, empty;
	siginfo_t info;
	int sig;

	sigemptyset(&empty);
	sigemptyset(&set);
	for (int i = 0; i < NR; i++) {
		sigaction(sigs[i], &act, NULL);
		sigaddset(&set, sigs[i]);
	}
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	send_all(1, 0);
	send_all(1, 0);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	show("thread");

	pthread_sigmask(SIG_BLOCK, &set, NULL);
	send_all(0, 1);
	send_all(0, 1);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	show("process");

	pthread_sigmask(SIG_BLOCK, &set, NULL);
	send_all(1, 1);
	CHECK_ERRNO(sigsuspend(&empty), EINTR);
	show("both, sigsuspend");

	send_all(1, 1);
	while ((sig = sigtimedwait(&set, &info, &now)) > 0)
		seen[nr_seen++] = sig;
	show("both, sigtimedwait");

	send_all(0, 1);
	CHECK_ERRNO(ppoll(&none, 1, &second, &empty), EINTR);
	show("process, ppoll");

	act.sa_mask = set;
	for (int i = 0; i < NR; i++)
		sigaction(sigs[i], &act, NULL);
	send_all(1, 1);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	show("both, one after the other");
	return arg;
}

static void *nothing(void *arg)
{
	return arg;
}

int main(void)
{
	/* Of the second kind some are what faults send: those are handled before all others, whatever their numbers. */
	const int some[][NR] = {
		{ SIGHUP, SIGUSR1, SIGUSR2, SIGTERM, SIGRTMIN, SIGRTMIN + 3 },
		{ SIGHUP, SIGSEGV, SIGINT, SIGBUS, SIGTERM, SIGSYS },
		{ SIGHUP, SIGTRAP, SIGILL, SIGFPE, SIGTERM, SIGRTMIN },
	};
	sigset_t set;

	join(start(nothing, NULL));
	for (size_t i = 0; i < sizeof(some) / sizeof(some[0]); i++) {
		memcpy(sigs, some[i], sizeof(sigs));
		body(NULL);
	}
	/* and where main has nothing to do with it */
	sigfillset(&set);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	return finish();
}
