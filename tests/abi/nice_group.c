// SPDX-License-Identifier: Apache-2.0
/*
 * setpriority() for a process group and for a user sets the nice value of every thread of every process there.
 */
#include <sys/resource.h>

#include "check.h"

static pthread_barrier_t at_start, at_end;
static pid_t other;

static void *is_there(void *arg)
{
	other = (pid_t)syscall(SYS_gettid);
	pthread_barrier_wait(&at_start);
	pthread_barrier_wait(&at_end);
	return arg;
}

static void all_have(int nice)
{
	CHECK_EQ(getpriority(PRIO_PROCESS, 0), nice);
	CHECK_EQ(getpriority(PRIO_PROCESS, other), nice);
	CHECK_EQ(getpriority(PRIO_PROCESS, getpid()), nice);
	CHECK_EQ(getpriority(PRIO_PGRP, 0), nice);
}

static void *sets(void *arg)
{
	int had = getpriority(PRIO_PROCESS, 0), status = -1;
	pid_t pid;

	CHECK_SYS(setpriority(PRIO_PROCESS, 0, had + 1));
	CHECK_EQ(getpriority(PRIO_PROCESS, other), had);
	CHECK_SYS(setpriority(PRIO_PGRP, 0, had + 2));
	all_have(had + 2);
	CHECK_SYS(setpriority(PRIO_PGRP, getpgrp(), had + 3));
	all_have(had + 3);
	CHECK_EQ(nice(1), had + 4);
	CHECK_EQ(getpriority(PRIO_PROCESS, other), had + 3);
	pid = fork();
	if (pid == 0)
		_exit(getpriority(PRIO_PROCESS, 0));
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(WEXITSTATUS(status), had + 4);
	return arg;
}

int main(void)
{
	pthread_t t;

	if (getpriority(PRIO_PROCESS, 0) < 0 || getpriority(PRIO_PROCESS, 0) > 15)
		return EXIT_SKIP;
	/* A group of our own: nobody else's nice value changes. */
	if (getpgrp() != getpid())
		CHECK_SYS(setpgid(0, 0));
	CHECK_PT(pthread_barrier_init(&at_start, NULL, 2));
	CHECK_PT(pthread_barrier_init(&at_end, NULL, 2));
	t = start(is_there, NULL);
	pthread_barrier_wait(&at_start);
	join(start(sets, NULL));
	pthread_barrier_wait(&at_end);
	join(t);
	ok("a process group");
	return finish();
}
