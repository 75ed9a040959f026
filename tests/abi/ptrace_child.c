// SPDX-License-Identifier: Apache-2.0
/*
 * A thread traces its children, made by fork() or vfork() and tracing themselves, or attached to, while others run
 * and move about: every request of its is the tracer's.
 */
#include <sched.h>
#include <sys/ptrace.h>
#include <sys/user.h>

#include "check.h"

#define NR_ROUNDS 9
#define NR_REQUESTS 8
#define CHILD_STATUS 5

enum way {
	BY_FORK,
	BY_VFORK,
	BY_ATTACH,
	NR_WAYS
};

static int stop;
static char *const child_argv[] = { "ptrace_child", "child", NULL };

static void *moves_about(void *arg)
{
	while (!LOAD(&stop))
		sched_yield();
	return arg;
}

static pid_t make_child(enum way way)
{
	pid_t pid = way == BY_VFORK ? vfork() : fork();

	if (pid)
		return pid;
	if (way == BY_ATTACH)
		for (;;)
			pause();
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
		_exit(126);
	if (way == BY_VFORK)
		execv("/proc/self/exe", child_argv);
	raise(SIGSTOP);
	_exit(CHILD_STATUS);
}

static void *traces(void *arg)
{
	for (int i = 0; i < NR_ROUNDS; i++) {
		enum way way = (enum way)(i % NR_WAYS);
		pid_t pid = make_child(way);
		int status = 0;

		CHECK_SYS(pid);
		if (way == BY_ATTACH)
			CHECK_SYS(ptrace(PTRACE_ATTACH, pid, NULL, NULL));
		/* Its own child: no other thread's */
		CHECK_EQ(waitpid(pid, &status, __WALL | __WNOTHREAD), pid);
		CHECK(WIFSTOPPED(status));
		CHECK_EQ(WSTOPSIG(status), way == BY_VFORK ? SIGTRAP : SIGSTOP);
		for (int n = 0; n < NR_REQUESTS; n++) {
			struct user_regs_struct regs = { 0 };

			sched_yield();
			CHECK_SYS(ptrace(PTRACE_GETREGS, pid, NULL, &regs));
			CHECK(regs.rsp != 0);
		}
		CHECK_SYS(ptrace(PTRACE_CONT, pid, NULL, NULL));
		if (way == BY_ATTACH)
			CHECK_SYS(kill(pid, SIGKILL));
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		CHECK(way == BY_ATTACH ? WIFSIGNALED(status)
				       : WIFEXITED(status) && WEXITSTATUS(status) == CHILD_STATUS);
	}
	return arg;
}

/* Nobody's tracer: the errors are the kernel's. */
static void errors(void)
{
	pid_t pid = make_child(BY_ATTACH);

	CHECK_ERRNO(ptrace(PTRACE_CONT, pid, NULL, NULL), ESRCH);
	CHECK_ERRNO(ptrace(PTRACE_CONT, 0x3fffffff, NULL, NULL), ESRCH);
	CHECK_ERRNO(ptrace(PTRACE_CONT, getpid(), NULL, NULL), ESRCH);
	kill(pid, SIGKILL);
	CHECK_EQ(waitpid(pid, NULL, 0), pid);
}

int main(int argc, char **argv)
{
	pthread_t t[4];
	int status = 0;
	pid_t pid;

	(void)argv;
	if (argc > 1)
		return CHILD_STATUS;
	pid = make_child(BY_FORK);
	CHECK_EQ(waitpid(pid, &status, WUNTRACED), pid);
	if (WIFEXITED(status)) {
		fprintf(stderr, "ptrace is forbidden\n");
		return EXIT_SKIP;
	}
	/* The first threads are made while a child is traced already. */
	t[0] = start(moves_about, NULL);
	t[1] = start(moves_about, NULL);
	CHECK_SYS(ptrace(PTRACE_CONT, pid, NULL, NULL));
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == CHILD_STATUS);
	ok("a child from before there were threads");

	t[2] = start(traces, NULL);
	t[3] = start(traces, NULL);
	join(t[2]);
	join(t[3]);
	ok("threads trace their children");
	traces(NULL);
	ok("main does");
	errors();
	ok("errors");
	STORE(&stop, 1);
	join(t[0]);
	join(t[1]);
	return finish();
}
