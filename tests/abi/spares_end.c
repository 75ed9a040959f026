// SPDX-License-Identifier: Apache-2.0
/*
 * A burst of calls that only the kernel can answer, each on a kernel thread of its own: afterwards the process
 * has less than half of them, and the next burst is served as well.
 */
#include <fcntl.h>
#include <sys/file.h>

#include "check.h"

#define MORE_THREADS 40 /* than processors */
#define MOST_THREADS 1000

static char path[] = "/tmp/weft-spares-XXXXXX";
static int held;
static int nr_ready; /* atomic */

static void *waits_for_lock(void *arg)
{
	int fd = (int)CHECK_SYS(open(path, O_RDWR));

	ADD(&nr_ready, 1);
	CHECK_SYS(flock(fd, LOCK_SH));
	close(fd);
	return arg;
}

/* The kernel's answer, asked from another process. */
static int kernel_threads(void)
{
	char name[64], line[256];
	int pipe_fds[2], nr = -1;
	pid_t pid, parent = getpid();

	CHECK_SYS(pipe(pipe_fds));
	pid = fork();
	if (pid == 0) {
		FILE *f;

		snprintf(name, sizeof(name), "/proc/%d/status", parent);
		f = fopen(name, "r");
		while (f && fgets(line, sizeof(line), f))
			if (sscanf(line, "Threads: %d", &nr) == 1)
				break;
		_exit(write(pipe_fds[1], &nr, sizeof(nr)) != sizeof(nr));
	}
	CHECK_EQ(read(pipe_fds[0], &nr, sizeof(nr)), sizeof(nr));
	reap(pid);
	close(pipe_fds[0]);
	close(pipe_fds[1]);
	return nr;
}

/* Returns how many kernel threads there were. */
static int burst(void)
{
	const long nr = MORE_THREADS + sysconf(_SC_NPROCESSORS_ONLN);
	pthread_t t[MOST_THREADS];
	int nr_there;

	STORE(&nr_ready, 0);
	CHECK_SYS(flock(held, LOCK_EX));
	CHECK(nr <= MOST_THREADS);
	for (long i = 0; i < nr; i++)
		t[i] = start(waits_for_lock, NULL);
	while (LOAD(&nr_ready) < nr)
		sched_yield();
	let_others_block();
	nr_there = kernel_threads();
	CHECK_SYS(flock(held, LOCK_UN));
	for (long i = 0; i < nr; i++)
		join(t[i]);
	return nr_there;
}

int main(void)
{
	int nr_there;

	held = (int)CHECK_SYS(mkstemp(path));
	nr_there = burst();
	/* Workers stay, a door, and two spares. As long as it takes; run.py has a limit. */
	while (kernel_threads() > nr_there / 2)
		sleep_ns(100 * MS);
	ok("few kernel threads are left");
	(void)burst();
	unlink(path);
	ok("they come back");
	return finish();
}
