// SPDX-License-Identifier: Apache-2.0
/*
 * Credentials change while threads begin calls that wait, each of which may need a kernel thread of its own: those that
 * are made at that moment change too. Root only.
 */
#include "tasks.h"

#include <sys/file.h>
#include <sys/prctl.h>

#define NR 6
#define ROUNDS 60
#define GROUP 8765

static pthread_barrier_t barrier;
static const char *path;

/* A lock of its own descriptor, which the process holds by another one until the end. */
static void *locks(void *arg)
{
	int fd = open(path, O_RDWR);

	CHECK_SYS(fd);
	pthread_barrier_wait(&barrier);
	CHECK_SYS(flock(fd, LOCK_EX));
	close(fd);
	return arg;
}

static void grow_and_change(void)
{
	const int want[NR_IDS] = { 0, GROUP, 0, GROUP };
	pthread_t t[NR];
	int fd = open(path, O_RDWR);
	pid_t looks;

	CHECK_SYS(flock(fd, LOCK_EX));
	pthread_barrier_init(&barrier, NULL, NR + 1);
	for (int i = 0; i < NR; i++)
		t[i] = start(locks, NULL);
	pthread_barrier_wait(&barrier);
	CHECK_SYS(setegid(GROUP));
	prctl(PR_SET_DUMPABLE, 1); /* else /proc files of who changed its ids belong to root */
	looks = fork();
	if (looks == 0) { /* sees the kernel threads, under weft */
		check_tasks_of(getppid(), "Gid:", want);
		_exit(finish());
	}
	reap(looks);
	close(fd);
	for (int i = 0; i < NR; i++)
		join(t[i]);
	_exit(finish());
}

int main(void)
{
	char name[] = "/tmp/weft-setid-XXXXXX";
	int fd;

	if (geteuid() != 0)
		return EXIT_SKIP;
	fd = mkstemp(name);
	CHECK_SYS(fd);
	path = name;
	for (int i = 0; i < ROUNDS; i++) {
		pid_t process = fork();

		CHECK_SYS(process);
		if (process == 0)
			grow_and_change();
		reap(process);
	}
	ok("every kernel thread has the new group");
	close(fd);
	unlink(name);
	return finish();
}
