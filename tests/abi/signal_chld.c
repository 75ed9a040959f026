// SPDX-License-Identifier: Apache-2.0
/*
 * SIGCHLD: a handler that reaps, with children made by threads; SIG_IGN and SA_NOCLDWAIT leave no zombies; children
 * that stop and go on, with and without SA_NOCLDSTOP.
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

static volatile sig_atomic_t nr_told;
static siginfo_t told;

static void on_one(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)context;
	told = *info;
	nr_told++;
}

/* Nothing but the signal, which is blocked otherwise, ends the wait. It tells who ended and how. */
static void *is_told(void *arg)
{
	sigset_t chld, none;

	sigemptyset(&none);
	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	for (int i = 0; i < 6; i++) {
		int status = 0, fds[2];
		char c = 'x';
		pid_t pid;

		CHECK_PT(pthread_sigmask(SIG_BLOCK, &chld, NULL));
		nr_told = 0;
		CHECK_SYS(pipe(fds));
		pid = fork();
		if (pid == 0) {
			if (read(fds[0], &c, 1) != 1)
				_exit(99);
			if (i % 2)
				_exit(40 + i);
			signal(SIGTERM, SIG_DFL);
			raise(SIGTERM);
		}
		CHECK_SYS(pid);
		CHECK_EQ(write(fds[1], &c, 1), 1);
		while (!nr_told)
			CHECK_ERRNO(sigsuspend(&none), EINTR);
		CHECK_EQ(nr_told, 1);
		CHECK_EQ(told.si_pid, pid);
		CHECK_EQ(told.si_uid, getuid());
		CHECK_EQ(told.si_code, i % 2 ? CLD_EXITED : CLD_KILLED);
		CHECK_EQ(told.si_status, i % 2 ? 40 + i : SIGTERM);
		CHECK_EQ(waitpid(pid, &status, WNOHANG), pid);
		CHECK_PT(pthread_sigmask(SIG_UNBLOCK, &chld, NULL));
		close(fds[0]);
		close(fds[1]);
	}
	return arg;
}

static int nr_codes[CLD_CONTINUED + 1];

static void counts_codes(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)context;
	ADD(&nr_codes[info->si_code], 1);
}

static void await(int code, int nr)
{
	while (LOAD(&nr_codes[code]) < nr)
		sleep_ns(MS);
}

/* The child stops, goes on and ends, each after the one before was seen: its signals could be one otherwise. */
static void *stops_child(void *with_signals)
{
	int fds[2], status = 0;
	char c = 0;
	pid_t pid;

	CHECK_SYS(pipe(fds));
	pid = fork();
	if (pid == 0) {
		raise(SIGSTOP);
		_exit(read(fds[0], &c, 1) == 1 ? 4 : 5);
	}
	CHECK_SYS(pid);
	CHECK_EQ(waitpid(pid, &status, WUNTRACED), pid);
	CHECK(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
	if (with_signals)
		await(CLD_STOPPED, 1);
	CHECK_SYS(kill(pid, SIGCONT));
	CHECK_EQ(waitpid(pid, &status, WCONTINUED), pid);
	CHECK(WIFCONTINUED(status));
	if (with_signals)
		await(CLD_CONTINUED, 1);
	CHECK_EQ(write(fds[1], &c, 1), 1);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 4);
	close(fds[0]);
	close(fds[1]);
	return NULL;
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

	sa.sa_sigaction = on_one;
	CHECK_SYS(sigaction(SIGCHLD, &sa, NULL));
	sigset_t chld, old;
	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	is_told(NULL);
	/* only that thread takes it */
	CHECK_PT(pthread_sigmask(SIG_BLOCK, &chld, &old));
	join(start(is_told, NULL));
	CHECK_PT(pthread_sigmask(SIG_SETMASK, &old, NULL));
	ok("sigsuspend until a child ends");

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

	sa.sa_sigaction = counts_codes;
	sa.sa_flags = SA_SIGINFO | SA_RESTART | SA_NOCLDWAIT;
	CHECK_SYS(sigaction(SIGCHLD, &sa, NULL));
	for (int i = 1; i <= 5; i++) {
		join(start(makes_child, (void *)5));
		CHECK_ERRNO(waitpid(-1, &status, 0), ECHILD);
		await(CLD_EXITED, i);
	}
	ok("SA_NOCLDWAIT: a signal, and nothing to wait for");
	memset(nr_codes, 0, sizeof(nr_codes));
	sa.sa_flags = SA_SIGINFO | SA_RESTART;
	CHECK_SYS(sigaction(SIGCHLD, &sa, NULL));
	join(start(stops_child, (void *)1));
	await(CLD_EXITED, 1);
	ok("children that stop and go on are told of");
	memset(nr_codes, 0, sizeof(nr_codes));
	sa.sa_flags = SA_SIGINFO | SA_RESTART | SA_NOCLDSTOP;
	CHECK_SYS(sigaction(SIGCHLD, &sa, NULL));
	join(start(stops_child, NULL));
	await(CLD_EXITED, 1);
	CHECK_EQ(nr_codes[CLD_STOPPED] + nr_codes[CLD_CONTINUED], 0);
	ok("SA_NOCLDSTOP: they are not");
	return finish();
}
