// SPDX-License-Identifier: Apache-2.0
/*
 * execve from a thread that is not main: the pid stays, the other threads are gone, the mask and
 * pending signals go along.
 */
#include "check.h"

static char pid_text[16];

static void *blocks(void *arg)
{
	pause();
	return arg;
}

static void *spins(void *arg)
{
	static volatile int never;

	while (!never)
		;
	return arg;
}

static void *execs(void *arg)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	kill(getpid(), SIGUSR2); /* blocked everywhere: stays pending for the process */
	if (execl("/nonexistent/program", "program", (char *)NULL) != -1 || errno != ENOENT)
		_exit(100);
	execl("/proc/self/exe", "again", "again", pid_text, (char *)NULL);
	_exit(101);
	return arg;
}

static int after_exec(const char *pid)
{
	sigset_t set;

	CHECK_EQ(getpid(), atoi(pid));
	CHECK_EQ(gettid(), getpid());
	pthread_sigmask(SIG_SETMASK, NULL, &set);
	CHECK(sigismember(&set, SIGUSR1));
	CHECK(sigismember(&set, SIGUSR2));
	CHECK(!sigismember(&set, SIGTERM));
	sigpending(&set);
	CHECK(sigismember(&set, SIGUSR2));
	CHECK(!sigismember(&set, SIGUSR1));
	return finish() ? 1 : 33;
}

int main(int argc, char **argv)
{
	if (argc == 3)
		return after_exec(argv[2]);
	if (argc == 2) {
		sigset_t set;

		sigemptyset(&set);
		sigaddset(&set, SIGUSR2);
		pthread_sigmask(SIG_BLOCK, &set, NULL);
		snprintf(pid_text, sizeof(pid_text), "%d", (int)getpid());
		for (int i = 0; i < 5; i++)
			start(blocks, NULL);
		start(spins, NULL);
		start(execs, NULL);
		for (;;)
			pause();
	}
	for (int i = 0; i < 5; i++)
		CHECK_EQ(run_self("first"), 33 << 8);
	ok("execve from a thread, 5 times");
	return finish();
}
