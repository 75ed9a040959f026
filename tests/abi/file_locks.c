// SPDX-License-Identifier: Apache-2.0
/*
 * flock, F_SETLKW and F_OFD_SETLKW: contention between threads of this process and a child.
 */
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include "check.h"

#define ROUNDS 100

static char path[] = "/tmp/weft-abi-XXXXXX";
static int *inside, *counter; /* shared with the child */

static void lock_file(int kind, int fd, int do_lock)
{
	struct flock range = { .l_type = do_lock ? F_WRLCK : F_UNLCK };
	int command = kind == 1 ? F_SETLKW : F_OFD_SETLKW;

	if (kind == 0)
		CHECK_SYS(flock(fd, do_lock ? LOCK_EX : LOCK_UN));
	else
		CHECK_SYS(fcntl(fd, command, &range));
}

static void *contends(void *arg)
{
	int kind = (int)(intptr_t)arg;
	int fd = (int)CHECK_SYS(open(path, O_RDWR));

	for (int i = 0; i < ROUNDS; i++) {
		lock_file(kind, fd, 1);
		CHECK_EQ(ADD(inside, 1), 1);
		int seen = LOAD(counter);

		sched_yield();
		STORE(counter, seen + 1);
		ADD(inside, -1);
		lock_file(kind, fd, 0);
	}
	/* Closing any descriptor drops the process's F_SETLKW locks: leave it open. */
	return NULL;
}

int main(void)
{
	static const char *const names[] = { "flock", "F_SETLKW", "F_OFD_SETLKW" };
	int fd = (int)CHECK_SYS(mkstemp(path));

	inside = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	counter = inside + 1;
	CHECK_EQ(write(fd, "x", 1), 1);
	for (intptr_t kind = 0; kind < 3; kind++) {
		/* F_SETLKW belongs to the process: one thread on each side. */
		int nr = kind == 1 ? 1 : 3;
		pthread_t t[3];

		*counter = 0;
		pid_t child = fork();
		if (child == 0) {
			for (int i = 0; i < nr; i++)
				t[i] = start(contends, (void *)kind);
			for (int i = 0; i < nr; i++)
				join(t[i]);
			_exit(finish());
		}
		CHECK_SYS(child);
		for (int i = 0; i < nr; i++)
			t[i] = start(contends, (void *)kind);
		for (int i = 0; i < nr; i++)
			join(t[i]);
		reap(child);
		CHECK_EQ(*counter, 2 * nr * ROUNDS);
		ok(names[kind]);
	}
	CHECK_SYS(unlink(path));
	return finish();
}
