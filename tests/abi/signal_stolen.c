// SPDX-License-Identifier: Apache-2.0
/*
 * Signals for the process find many threads in calls: one takes the signal, and the others, which were interrupted for
 * nothing, wait on. None of their calls returns anything that futex(2) and read(2) do not know, and none is ended by a
 * signal whose handler has run elsewhere.
 */
#include <linux/futex.h>
#include "check.h"

#include <sched.h>

#define NR_KINDS 6
#define NR_WAITERS (2 * NR_KINDS)
#define NR_SENDERS 3
#define NR_SENT 100000

static int is_over, nr_handled;
static uint32_t word;
static int p[2];
static __thread volatile int nr_handled_here;

static void handler(int sig)
{
	(void)sig;
	nr_handled_here++;
	ADD(&nr_handled, 1);
}

static void wait_by(int op, long ns)
{
	while (!LOAD(&is_over)) {
		struct timespec shortly = { 0, ns };
		int before = nr_handled_here;
		long ret = syscall(SYS_futex, &word, op, 0, &shortly, NULL, 0);

		if (ret == 0)
			continue;
		CHECK_EQ(ret, -1);
		CHECK(errno == ETIMEDOUT || errno == EINTR || errno == EAGAIN);
		CHECK(errno != EINTR || nr_handled_here != before);
	}
}

static void *waits(void *arg)
{
	wait_by(FUTEX_WAIT_PRIVATE, 200000);
	return arg;
}

/* Long enough to be in the call when the signals come. */
static void *waits_shared(void *arg)
{
	wait_by(FUTEX_WAIT, 20000000);
	return arg;
}

static void *reads(void *arg)
{
	for (;;) {
		char c = 0;

		CHECK_EQ(read(p[0], &c, 1), 1);
		if (c == 'e')
			return arg;
		CHECK_EQ(c, 'x');
	}
}

/* Lets signals in for moments only: those that were on their way to another. */
static void *takes(void *arg)
{
	sigset_t all;

	sigfillset(&all);
	while (!LOAD(&is_over)) {
		pthread_sigmask(SIG_BLOCK, &all, NULL);
		sched_yield();
		pthread_sigmask(SIG_UNBLOCK, &all, NULL);
	}
	return arg;
}

static void *sends(void *arg)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	for (int i = 0; i < NR_SENT; i++) {
		CHECK_SYS(kill(getpid(), i % 2 ? SIGUSR1 : SIGUSR2));
		if (i % 16 == 0)
			CHECK_EQ(write(p[1], "x", 1), 1);
		if (i % 8 == 0)
			CHECK_SYS(syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0));
	}
	return arg;
}

int main(void)
{
	struct sigaction sa = { .sa_handler = handler, .sa_flags = SA_RESTART };
	sigset_t all;
	void *(*const kinds[NR_KINDS])(void *arg) = { reads,        waits,        reads,
						      waits_shared, waits_shared, takes };
	pthread_t waiters[NR_WAITERS], senders[NR_SENDERS];

	CHECK_SYS(pipe(p));
	CHECK_SYS(sigaction(SIGUSR1, &sa, NULL));
	CHECK_SYS(sigaction(SIGUSR2, &sa, NULL));
	for (int i = 0; i < NR_WAITERS; i++)
		waiters[i] = start(kinds[i % NR_KINDS], NULL);
	for (int i = 0; i < NR_SENDERS; i++)
		senders[i] = start(sends, NULL);
	sigfillset(&all); /* it would be asked first */
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	for (int i = 0; i < NR_SENDERS; i++)
		join(senders[i]);
	STORE(&is_over, 1);
	for (int i = 0; i < NR_WAITERS; i++)
		CHECK_EQ(write(p[1], "e", 1), 1);
	for (int i = 0; i < NR_WAITERS; i++)
		join(waiters[i]);
	CHECK(nr_handled > 0);
	ok("no call returns what it cannot");
	return finish();
}
