// SPDX-License-Identifier: Apache-2.0
/*
 * fork(), vfork() and posix_spawn() in signal handlers: of a thread that computes, of one that waits, and of main. The
 * child goes on in the handler, alone, with the mask that the handler had, and can make threads.
 */
#include "check.h"

#include <spawn.h>

#define ROUNDS 5

static int nr_handled, is_over, fds[2];

static void *adds(void *arg)
{
	ADD((int *)arg, 1);
	return NULL;
}

/* The handler's own signal is blocked in it; what is sent meanwhile comes when it is unblocked. */
static void is_child(void)
{
	struct timespec now = { 0, 0 };
	sigset_t set;
	int sum = 0;

	CHECK_EQ(syscall(SYS_gettid), getpid());
	CHECK_PT(pthread_sigmask(SIG_BLOCK, NULL, &set));
	CHECK_EQ(sigismember(&set, SIGUSR1), 1);
	CHECK_EQ(sigismember(&set, SIGUSR2), 0);
	raise(SIGUSR1);
	join(start(adds, &sum));
	join(start(adds, &sum));
	CHECK_EQ(sum, 2);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	CHECK_EQ(sigtimedwait(&set, NULL, &now), SIGUSR1);
	_exit(abi_failures ? 1 : 7);
}

static void check_ends(pid_t pid, int want)
{
	int status = 0;

	CHECK_SYS(pid);
	while (waitpid(pid, &status, 0) == -1 && errno == EINTR)
		;
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == want);
}

static void forks(int sig)
{
	extern char **environ;
	char *argv[] = { "sh", "-c", "exit 9", NULL };
	int saved = errno;
	pid_t pid = fork();

	(void)sig;
	if (pid == 0)
		is_child();
	check_ends(pid, 7);
	pid = vfork();
	if (pid == 0)
		_exit(8);
	check_ends(pid, 8);
	CHECK_PT(posix_spawn(&pid, "/bin/sh", NULL, NULL, argv, environ));
	check_ends(pid, 9);
	ADD(&nr_handled, 1);
	errno = saved;
}

static void *computes(void *arg)
{
	while (!LOAD(&is_over))
		;
	return arg;
}

static void *waits(void *arg)
{
	char c;

	CHECK_EQ(read(fds[0], &c, 1), 1);
	return arg;
}

static void in_thread(void *(*fn)(void *))
{
	pthread_t t = start(fn, NULL);

	let_others_block();
	for (int i = 1; i <= ROUNDS; i++) {
		CHECK_PT(pthread_kill(t, SIGUSR1));
		while (LOAD(&nr_handled) < i)
			sleep_ns(MS);
	}
	STORE(&is_over, 1);
	CHECK_EQ(write(fds[1], "x", 1), 1);
	join(t);
	STORE(&nr_handled, 0);
}

int main(void)
{
	struct sigaction sa = { .sa_handler = forks, .sa_flags = SA_RESTART };
	char c;

	CHECK_SYS(pipe(fds));
	CHECK_SYS(sigaction(SIGUSR1, &sa, NULL));
	in_thread(computes);
	CHECK_EQ(read(fds[0], &c, 1), 1);
	ok("in a thread that computes");
	in_thread(waits);
	ok("in a thread that waits");
	for (int i = 0; i < ROUNDS; i++)
		raise(SIGUSR1);
	CHECK_EQ(nr_handled, ROUNDS);
	ok("in main");
	return finish();
}
