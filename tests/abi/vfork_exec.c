// SPDX-License-Identifier: Apache-2.0
/*
 * vfork and exec from main and from threads; the parent goes on only when the child is gone.
 */
#include "check.h"

static int counter;

static void run_one(void)
{
	volatile int seen_by_child = 0;
	int status = -1;
	pid_t pid = vfork();

	if (pid == 0) {
		seen_by_child = 1;
		execl("/bin/sh", "sh", "-c", "exit 3", (char *)NULL);
		_exit(127);
	}
	CHECK_SYS(pid);
	CHECK_EQ(seen_by_child, 1);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 3);

	pid = vfork();
	if (pid == 0)
		_exit(4);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 4);

	pid = vfork();
	if (pid == 0) {
		execl("/nonexistent/program", "program", (char *)NULL);
		_exit(errno == ENOENT ? 5 : 6);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 5);
}

static void *runs(void *arg)
{
	for (int i = 0; i < 3; i++)
		run_one();
	ADD(&counter, 1);
	return arg;
}

int main(void)
{
	pthread_t t[10];

	run_one();
	ok("main, no threads yet");
	for (int i = 0; i < 10; i++)
		t[i] = start(runs, NULL);
	for (int i = 0; i < 10; i++)
		join(t[i]);
	CHECK_EQ(counter, 10);
	ok("10 threads");
	run_one();
	ok("main again");
	return finish();
}
