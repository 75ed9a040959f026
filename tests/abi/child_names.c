// SPDX-License-Identifier: Apache-2.0
/*
 * A process that a thread makes is called as the thread, until it executes something: fork, vfork, clone.
 */
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include "check.h"

#define STACK_BYTES (64 << 10)

static char seen[16];
static char stack[STACK_BYTES] __attribute__((aligned(16)));

static int says_its_name(void *arg)
{
	(void)arg;
	prctl(PR_GET_NAME, seen);
	_exit(strcmp(seen, "forker") != 0);
}

static int status_of(int pid)
{
	int status = -1;

	CHECK(pid > 0);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	return status;
}

static void *makes_processes(void *arg)
{
	char name[16];
	int pid;

	CHECK_SYS(prctl(PR_SET_NAME, "forker"));
	pid = fork();
	if (pid == 0)
		says_its_name(NULL);
	CHECK_EQ(status_of(pid), 0);
	pid = vfork();
	if (pid == 0)
		says_its_name(NULL);
	CHECK_EQ(status_of(pid), 0);
	CHECK_STR(seen, "forker");
	CHECK_EQ(status_of(clone(says_its_name, stack + STACK_BYTES, SIGCHLD, NULL)), 0);
	memset(seen, 0, sizeof(seen));
	CHECK_EQ(status_of(clone(says_its_name, stack + STACK_BYTES,
				 CLONE_VM | CLONE_VFORK | SIGCHLD, NULL)),
		 0);
	CHECK_STR(seen, "forker");
	CHECK_SYS(prctl(PR_GET_NAME, name));
	CHECK_STR(name, "forker");
	return arg;
}

int main(void)
{
	char before[16], after[16];
	pthread_t t;

	CHECK_SYS(prctl(PR_GET_NAME, before));
	CHECK_PT(pthread_create(&t, NULL, makes_processes, NULL));
	CHECK_PT(pthread_join(t, NULL));
	CHECK_SYS(prctl(PR_GET_NAME, after));
	CHECK_STR(after, before);
	return finish();
}
