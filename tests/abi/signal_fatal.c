// SPDX-License-Identifier: Apache-2.0
/*
 * A signal that ends the process does it at once, whichever thread it is for and whatever that one is doing: who
 * sends it to its own process never comes back.
 */
#include <sys/mman.h>

#include "check.h"

static int *came_back; /* in memory that outlives the process */

static void *sends(void *sig)
{
	kill(getpid(), (int)(intptr_t)sig);
	STORE(came_back, 1);
	return sig;
}

static void *waits(void *arg)
{
	for (;;)
		pause();
	return arg;
}

static void by(int sig)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		start(waits, NULL);
		join(start(sends, (void *)(intptr_t)sig)); /* main, which takes it, waits here */
		_exit(1);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == sig);
}

int main(void)
{
	came_back = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	for (int i = 0; i < 20; i++) {
		by(SIGTERM);
		by(SIGALRM);
		by(SIGRTMIN);
	}
	CHECK_EQ(LOAD(came_back), 0);
	ok("nobody comes back");
	return finish();
}
