// SPDX-License-Identifier: Apache-2.0
/*
 * Default actions: a process with busy threads dies by the right signal, stops and continues.
 */
#include <sys/resource.h>
#include "check.h"

static int fds[2];
static char *volatile bad_address = (char *)8; /* volatile: unknown to the compiler */

static void *blocks(void *arg)
{
	char c;

	while (read(fds[0], &c, 1) == -1)
		;
	return arg;
}

static void *spins(void *arg)
{
	static volatile int never;

	while (!never)
		;
	return arg;
}

static void *acts(void *what)
{
	switch (*(const char *)what) {
	case 'a':
		abort();
	case 'r':
		raise(SIGUSR1);
		break;
	case 'k':
		kill(getpid(), SIGKILL);
		break;
	case 's':
		*bad_address = 1;
		break;
	case 't':
		pthread_kill(pthread_self(), SIGTERM);
		break;
	}
	return NULL;
}

static int child_side(const char *what)
{
	struct rlimit none = { 0, 0 };

	setrlimit(RLIMIT_CORE, &none);
	if (pipe(fds) == -1)
		return 99;
	for (int i = 0; i < 3; i++)
		start(i == 2 ? spins : blocks, NULL);
	if (what[0] == 'w') {
		/* Told by a line that we are up; the parent sends the signal. */
		if (write(3, "u", 1) != 1)
			return 98;
		if (what[1] == 's')
			spins(NULL);
		for (;;)
			pause();
	}
	start(acts, (void *)what);
	for (;;)
		pause();
}

static int send_to_child(const char *how, int sig)
{
	int up[2], status = -1;
	char c;

	CHECK_SYS(pipe(up));
	pid_t pid = fork();
	if (pid == 0) {
		/* Its own group, the parent in another: else the kernel ignores stops. */
		setpgid(0, 0);
		dup2(up[1], 3);
		execl("/proc/self/exe", "child", how, (char *)NULL);
		_exit(126);
	}
	close(up[1]);
	CHECK_EQ(read(up[0], &c, 1), 1);
	close(up[0]);
	if (sig == SIGSTOP) {
		CHECK_SYS(kill(pid, SIGTSTP));
		CHECK_EQ(waitpid(pid, &status, WUNTRACED), pid);
		CHECK(WIFSTOPPED(status) && WSTOPSIG(status) == SIGTSTP);
		CHECK_SYS(kill(pid, SIGCONT));
		CHECK_EQ(waitpid(pid, &status, WCONTINUED), pid);
		CHECK(WIFCONTINUED(status));
		sig = SIGTERM;
	}
	CHECK_SYS(kill(pid, SIGWINCH)); /* ignored by default */
	CHECK_SYS(kill(pid, sig));
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) ? WTERMSIG(status) : -1;
}

int main(int argc, char **argv)
{
	if (argc == 2)
		return child_side(argv[1]);
	CHECK_EQ(WTERMSIG(run_self("abort")), SIGABRT);
	CHECK_EQ(WTERMSIG(run_self("raise")), SIGUSR1);
	CHECK_EQ(WTERMSIG(run_self("kill")), SIGKILL);
	CHECK_EQ(WTERMSIG(run_self("segv")), SIGSEGV);
	CHECK_EQ(WTERMSIG(run_self("term")), SIGTERM);
	ok("abort, raise, kill, a fault and pthread_kill in a thread");
	CHECK_EQ(send_to_child("wait", SIGINT), SIGINT);
	CHECK_EQ(send_to_child("wait", SIGTERM), SIGTERM);
	CHECK_EQ(send_to_child("wait", SIGHUP), SIGHUP);
	CHECK_EQ(send_to_child("wait", SIGRTMIN + 2), SIGRTMIN + 2);
	CHECK_EQ(send_to_child("ws", SIGINT), SIGINT);
	CHECK_EQ(send_to_child("ws", SIGTERM), SIGTERM);
	ok("from outside, main asleep or busy");
	CHECK_EQ(send_to_child("wait", SIGSTOP), SIGTERM);
	ok("stop and continue");
	return finish();
}
