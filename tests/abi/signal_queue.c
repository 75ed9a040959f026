// SPDX-License-Identifier: Apache-2.0
/*
 * Real-time signals are queued, none is lost, they keep their order, lower numbers come first.
 */
#include "check.h"

#define NR 300

static int values[NR * 2], sigs[NR * 2];
static int nr_seen;
static pthread_t self;

static void on_signal(int sig, siginfo_t *info, void *context)
{
	(void)context;
	CHECK(pthread_equal(self, pthread_self()));
	sigs[nr_seen] = sig;
	values[nr_seen] = info->si_value.sival_int;
	ADD(&nr_seen, 1);
}

static void *sends(void *arg)
{
	for (int i = 0; i < NR; i++)
		CHECK_PT(pthread_sigqueue(*(pthread_t *)arg, SIGRTMIN + 3,
					  (union sigval){ .sival_int = i }));
	return arg;
}

static void *receives(void *arg)
{
	sigset_t set;

	self = pthread_self();
	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN + 1);
	sigaddset(&set, SIGRTMIN + 2);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	for (int i = 0; i < NR; i++) {
		CHECK_PT(pthread_sigqueue(self, SIGRTMIN + 2, (union sigval){ .sival_int = i }));
		CHECK_PT(pthread_sigqueue(self, SIGRTMIN + 1, (union sigval){ .sival_int = i }));
	}
	for (int i = 0; i < NR * 2; i++) {
		siginfo_t info;

		CHECK_EQ(sigwaitinfo(&set, &info), SIGRTMIN + (i < NR ? 1 : 2));
		CHECK_EQ(info.si_value.sival_int, i % NR);
	}
	STORE(&nr_seen, 0);
	for (int i = 0; i < NR; i++)
		CHECK_PT(pthread_sigqueue(self, SIGRTMIN + 1, (union sigval){ .sival_int = i }));
	CHECK_EQ(LOAD(&nr_seen), 0);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	CHECK_EQ(LOAD(&nr_seen), NR);
	for (int i = 0; i < NR; i++) {
		CHECK_EQ(values[i], i);
		CHECK_EQ(sigs[i], SIGRTMIN + 1);
	}
	return arg;
}

int main(void)
{
	struct sigaction sa = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART };

	/* One at a time, so that the order of the handlers is the order of the queue. */
	sigfillset(&sa.sa_mask);
	for (int i = 1; i <= 3; i++)
		sigaction(SIGRTMIN + i, &sa, NULL);
	join(start(receives, NULL));
	ok("queued for a thread, taken in order");
	receives(NULL);
	ok("queued for main, taken in order");

	self = pthread_self();
	STORE(&nr_seen, 0);
	pthread_t t = start(sends, &self);
	while (LOAD(&nr_seen) < NR)
		sched_yield();
	join(t);
	for (int i = 0; i < NR; i++)
		CHECK_EQ(values[i], i);
	ok("sent by another thread while running");

	sigset_t set;
	siginfo_t info;
	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN + 1);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	for (int i = 0; i < NR; i++)
		CHECK_SYS(sigqueue(getpid(), SIGRTMIN + 1, (union sigval){ .sival_int = i }));
	for (int i = 0; i < NR; i++) {
		CHECK_EQ(sigwaitinfo(&set, &info), SIGRTMIN + 1);
		CHECK_EQ(info.si_value.sival_int, i);
	}
	ok("queued for the process");
	return finish();
}
