// SPDX-License-Identifier: Apache-2.0
/*
 * SIGCHLD: a handler that reaps, with children made by threads; SIG_IGN leaves no zombies.
 */
#include "check.h"

#define NR 20

static int nr_reaped, sum, last_code;

static void on_chld(int sig, siginfo_t *info, void *context)
{
	int saved = errno, status;

	(void)sig;
	(void)context;
	STORE(&last_code, info->si_code);
	while (waitpid(-1, &status, WNOHANG) > 0) {
		ADD(&sum, WEXITSTATUS(status));
		ADD(&nr_reaped, 1);
	}
	errno = saved;
}

static void *makes_child(void *arg)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit((int)(intptr_t)arg);
	CHECK_SYS(pid);
	return NULL;
}

int main(void)
{
	struct sigaction sa = { .sa_sigaction = on_chld, .sa_flags = SA_SIGINFO | SA_RESTART };
	pthread_t t[NR];
	int status;

	CHECK_SYS(sigaction(SIGCHLD, &sa, NULL));
	for (intptr_t i = 0; i < NR; i++)
		t[i] = start(makes_child, (void *)(i + 1));
	for (int i = 0; i < NR; i++)
		join(t[i]);
	while (LOAD(&nr_reaped) < NR)
		sleep_ns(MS);
	CHECK_EQ(sum, NR * (NR + 1) / 2);
	CHECK_EQ(last_code, CLD_EXITED);
	ok("a handler reaps 20 children of 20 threads");

	signal(SIGCHLD, SIG_IGN);
	for (int i = 0; i < 5; i++)
		join(start(makes_child, NULL));
	CHECK_ERRNO(waitpid(-1, &status, 0), ECHILD);
	ok("SIG_IGN: nothing to wait for");
	signal(SIGCHLD, SIG_DFL);
	join(start(makes_child, (void *)3));
	CHECK(waitpid(-1, &status, 0) > 0);
	CHECK_EQ(WEXITSTATUS(status), 3);
	ok("SIG_DFL: as ever");
	return finish();
}
