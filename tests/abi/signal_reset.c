// SPDX-License-Identifier: Apache-2.0
/* SA_RESETHAND: a handler that has run is gone, for the process, its children and over exec. */
#include "check.h"

static volatile int nr_handled;

static void handler(int sig)
{
	(void)sig;
	nr_handled++;
}

static int is_default(void)
{
	struct sigaction act;

	sigaction(SIGUSR1, NULL, &act);
	return act.sa_handler == SIG_DFL;
}

static void *nothing(void *arg)
{
	return arg;
}

int main(int argc, char **argv)
{
	struct sigaction act = { .sa_handler = handler, .sa_flags = SA_RESETHAND };
	int status = -1;
	pid_t pid;

	(void)argv;
	if (argc > 1) {
		raise(SIGUSR1);
		return 0;
	}
	join(start(nothing, NULL));
	sigaction(SIGUSR1, &act, NULL);
	raise(SIGUSR1);
	CHECK_EQ(nr_handled, 1);
	CHECK(is_default());
	ok("in the process");

	pid = fork();
	if (pid == 0) {
		int code = is_default() ? 3 : 4;

		raise(SIGUSR1);
		_exit(code);
	}
	CHECK_SYS(waitpid(pid, &status, 0));
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGUSR1);
	ok("in a child");

	status = run_self("again");
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGUSR1);
	ok("in a new program");
	return finish();
}
