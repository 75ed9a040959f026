// SPDX-License-Identifier: Apache-2.0
/*
 * A real-time program on one processor: threads that yield in a loop let in what else has their priority, a process
 * that they wait for included.
 */
#include "check.h"

#include <sched.h>
#include <sys/mman.h>

static int *nr_yielding, *has_run; /* shared with the child */

static void *yields(void *arg)
{
	ADD(nr_yielding, 1);
	while (!LOAD(has_run))
		sched_yield();
	return arg;
}

int main(int argc, char **argv)
{
	struct sched_param p = { .sched_priority = 1 };
	cpu_set_t one;
	pthread_t t[2];
	pid_t pid;

	if (argc < 2) {
		CHECK_SYS(sched_getaffinity(0, sizeof(one), &one));
		for (int i = 0, n = 0; i < CPU_SETSIZE; i++)
			if (CPU_ISSET(i, &one) && n++)
				CPU_CLR(i, &one);
		CHECK_SYS(sched_setaffinity(0, sizeof(one), &one));
		if (sched_setscheduler(0, SCHED_FIFO, &p) < 0)
			return EXIT_SKIP;
		/* Again, so that all of it has been real-time from the start. */
		execl("/proc/self/exe", argv[0], "again", (char *)NULL);
		return 126;
	}
	has_run = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(has_run != MAP_FAILED);
	nr_yielding = has_run + 1;
	pid = fork();
	if (pid == 0) {
		while (LOAD(nr_yielding) < 3)
			sched_yield();
		STORE(has_run, 1);
		_exit(0);
	}
	CHECK_SYS(pid);
	for (int i = 0; i < 2; i++)
		t[i] = start(yields, NULL);
	yields(NULL);
	for (int i = 0; i < 2; i++)
		join(t[i]);
	reap(pid);
	ok("yields let another process of the same priority run");
	return finish();
}
