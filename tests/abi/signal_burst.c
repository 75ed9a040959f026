// SPDX-License-Identifier: Apache-2.0
/*
 * Real-time signals that another process sends in a burst, while every thread blocks them, come in order and all: to
 * one that waits for them, and as handlers.
 */
#include "check.h"

#define ROUNDS 200
#define BURST 6

static int nr_handled, nr_wrong, is_over;

static void on_signal(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)context;
	nr_wrong += info->si_value.sival_int != nr_handled++ % BURST;
}

static void *another(void *arg)
{
	while (!LOAD(&is_over))
		(void)usleep(1000);
	return arg;
}

/* The child: one burst for each byte, and a byte when it is sent. */
static void send_bursts(int from, int to)
{
	char c;

	while (read(from, &c, 1) == 1) {
		for (int i = 0; i < BURST; i++) {
			const union sigval value = { .sival_int = i };

			if (sigqueue(getppid(), SIGRTMIN, value))
				_exit(1);
		}
		(void)!write(to, &c, 1);
	}
	_exit(0);
}

static void wait_for_all(const sigset_t *set)
{
	for (int i = 0; i < BURST; i++) {
		siginfo_t info;

		CHECK(sigwaitinfo(set, &info) == SIGRTMIN);
		nr_wrong += info.si_value.sival_int != i;
	}
}

int main(void)
{
	const struct sigaction action = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO };
	int there[2], back[2], status = -1;
	sigset_t set;
	pthread_t t;
	pid_t child;
	char c = 0;

	CHECK(pipe(there) == 0 && pipe(back) == 0);
	child = fork();
	if (child == 0) {
		(void)close(there[1]);
		send_bursts(there[0], back[1]);
	}
	(void)close(there[0]);
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGRTMIN);
	CHECK(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
	CHECK(sigaction(SIGRTMIN, &action, NULL) == 0);
	CHECK(pthread_create(&t, NULL, another, NULL) == 0);

	for (int round = 0; round < ROUNDS; round++) {
		CHECK(write(there[1], &c, 1) == 1 && read(back[0], &c, 1) == 1);
		wait_for_all(&set);
	}
	CHECK(nr_wrong == 0);
	ok("a wait takes them in order");

	for (int round = 0; round < ROUNDS; round++) {
		CHECK(write(there[1], &c, 1) == 1 && read(back[0], &c, 1) == 1);
		CHECK(pthread_sigmask(SIG_UNBLOCK, &set, NULL) == 0);
		while (nr_handled < (round + 1) * BURST)
			(void)usleep(100);
		CHECK(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
	}
	CHECK(nr_wrong == 0);
	ok("handlers run in order");

	(void)close(there[1]);
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	STORE(&is_over, 1);
	CHECK(pthread_join(t, NULL) == 0);
	return finish();
}
