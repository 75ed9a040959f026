// SPDX-License-Identifier: Apache-2.0
/*
 * posix_spawn from threads: exit status, file actions, signal mask, default signals, errors.
 */
#include <fcntl.h>
#include <spawn.h>
#include "check.h"

extern char **environ;

static int child_side(void)
{
	sigset_t mask;
	struct sigaction sa;
	char buf[8];

	pthread_sigmask(SIG_SETMASK, NULL, &mask);
	CHECK(sigismember(&mask, SIGUSR2));
	CHECK(!sigismember(&mask, SIGUSR1));
	CHECK_SYS(sigaction(SIGTERM, NULL, &sa));
	CHECK(sa.sa_handler == SIG_DFL);
	CHECK_SYS(sigaction(SIGHUP, NULL, &sa));
	CHECK(sa.sa_handler == SIG_IGN);
	CHECK_EQ(read(0, buf, 5), 5);
	CHECK(!memcmp(buf, "input", 5));
	CHECK_EQ(write(1, "output", 6), 6);
	return finish() ? 1 : 21;
}

static void *spawns(void *arg)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	char *argv[] = { "spawned", "child", NULL }, buf[16];
	int in[2], out[2], status = -1;
	sigset_t set;
	pid_t pid;

	CHECK_SYS(pipe2(in, O_CLOEXEC));
	CHECK_SYS(pipe2(out, O_CLOEXEC));
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, in[0], 0);
	posix_spawn_file_actions_adddup2(&actions, out[1], 1);
	posix_spawnattr_init(&attr);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	posix_spawnattr_setsigmask(&attr, &set);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	posix_spawnattr_setsigdefault(&attr, &set);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	CHECK_PT(posix_spawn(&pid, "/proc/self/exe", &actions, &attr, argv, environ));
	CHECK_EQ(write(in[1], "input", 5), 5);
	CHECK_EQ(read(out[0], buf, sizeof(buf)), 6);
	CHECK(!memcmp(buf, "output", 6));
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 21);

	posix_spawn_file_actions_addopen(&actions, 5, "/nonexistent/file", O_RDONLY, 0);
	CHECK_EQ(posix_spawn(&pid, "/proc/self/exe", &actions, &attr, argv, environ), ENOENT);
	CHECK_EQ(posix_spawn(&pid, "/nonexistent/program", NULL, NULL, argv, environ), ENOENT);
	char *sh[] = { "sh", "-c", "exit 9", NULL };
	CHECK_PT(posix_spawnp(&pid, "sh", NULL, NULL, sh, environ));
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 9);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attr);
	for (int i = 0; i < 2; i++) {
		close(in[i]);
		close(out[i]);
	}
	return arg;
}

static void on_term(int sig)
{
	(void)sig;
}

int main(int argc, char **argv)
{
	pthread_t t[10];

	if (argc == 2 && !strcmp(argv[1], "child"))
		return child_side();
	signal(SIGTERM, on_term);
	signal(SIGHUP, SIG_IGN);
	spawns(NULL);
	ok("main");
	for (int i = 0; i < 10; i++)
		t[i] = start(spawns, NULL);
	for (int i = 0; i < 10; i++)
		join(t[i]);
	ok("10 threads");
	return finish();
}
