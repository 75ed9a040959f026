// SPDX-License-Identifier: Apache-2.0
/*
 * Signals for the process find many threads in calls: one takes the signal, and the others, which were interrupted for
 * nothing, wait on. None of their calls returns anything that futex(2) and read(2) do not know.
 */
#include <linux/futex.h>
#include "check.h"

#define NR_WAITERS 6
#define NR_SENDERS 3
#define NR_SENT 1500

static int is_over, nr_handled;
static uint32_t word;
static int p[2];

static void handler(int sig)
{
	(void)sig;
	ADD(&nr_handled, 1);
}

static void *waits(void *arg)
{
	while (!LOAD(&is_over)) {
		struct timespec shortly = { 0, 200000 };
		long ret = syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &shortly, NULL, 0);

		if (ret == -1)
			CHECK(errno == ETIMEDOUT || errno == EINTR || errno == EAGAIN);
		else
			CHECK_EQ(ret, 0);
	}
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
	pthread_t waiters[NR_WAITERS], senders[NR_SENDERS];

	CHECK_SYS(pipe(p));
	CHECK_SYS(sigaction(SIGUSR1, &sa, NULL));
	CHECK_SYS(sigaction(SIGUSR2, &sa, NULL));
	for (int i = 0; i < NR_WAITERS; i++)
		waiters[i] = start(i % 2 ? waits : reads, NULL);
	for (int i = 0; i < NR_SENDERS; i++)
		senders[i] = start(sends, NULL);
	for (int i = 0; i < NR_SENDERS; i++)
		join(senders[i]);
	STORE(&is_over, 1);
	for (int i = 0; i < NR_WAITERS / 2; i++)
		CHECK_EQ(write(p[1], "e", 1), 1);
	for (int i = 0; i < NR_WAITERS; i++)
		join(waiters[i]);
	CHECK(nr_handled > 0);
	ok("no call returns what it cannot");
	return finish();
}
