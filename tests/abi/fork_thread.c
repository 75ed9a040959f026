// SPDX-License-Identifier: Apache-2.0
/*
 * fork in a thread: the child has one thread, makes its own, exits with a status; grandchildren.
 */
#include "check.h"

static __thread int in_thread = 5;
static int fds[2];

static void *counts(void *arg)
{
	ADD((int *)arg, 1);
	return arg;
}

/* Returns the exit status of this generation. */
static int child_side(pid_t parent, pthread_t self, int depth)
{
	pthread_t t[10];
	int counter = 0;

	CHECK(getpid() != parent);
	CHECK_EQ(getppid(), parent);
	CHECK_EQ(gettid(), getpid());
	CHECK(pthread_equal(self, pthread_self()));
	CHECK_EQ(in_thread, 6);
	for (int i = 0; i < 10; i++)
		t[i] = start(counts, &counter);
	for (int i = 0; i < 10; i++)
		join(t[i]);
	CHECK_EQ(counter, 10);
	if (depth > 0) {
		pid_t me = getpid(), pid = fork();

		if (pid == 0)
			_exit(child_side(me, self, depth - 1));
		CHECK_SYS(pid);
		reap(pid);
	}
	return finish() ? 1 : depth == 2 ? 42 : 0;
}

static void *forks(void *arg)
{
	int status = -1;
	pid_t parent = getpid(), pid;

	in_thread = 6;
	pid = fork();
	if (pid == 0)
		_exit(child_side(parent, pthread_self(), 2));
	CHECK_SYS(pid);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 42);
	CHECK_EQ(getpid(), parent);
	return arg;
}

static void *blocks(void *arg)
{
	char c;

	/* A thread that is in a call while others fork; the children must not disturb it. */
	CHECK_EQ(read(fds[0], &c, 1), 1);
	return arg;
}

int main(void)
{
	pthread_t t[10], blocked;

	CHECK_SYS(pipe(fds));
	blocked = start(blocks, NULL);
	join(start(forks, NULL));
	ok("fork in one thread, three generations");
	for (int i = 0; i < 10; i++)
		t[i] = start(forks, NULL);
	for (int i = 0; i < 10; i++)
		join(t[i]);
	ok("fork in 10 threads at once");
	in_thread = 5;
	forks(NULL);
	ok("fork in main");
	CHECK_EQ(write(fds[1], "x", 1), 1);
	join(blocked);
	ok("a blocked thread was not disturbed");

	pid_t pid = fork();
	if (pid == 0) {
		int counter = 0;

		pthread_detach(start(counts, &counter));
		join(start(counts, &counter));
		exit(finish());
	}
	reap(pid);
	ok("exit() in a child with threads");
	return finish();
}
