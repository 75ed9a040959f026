// SPDX-License-Identifier: Apache-2.0
/*
 * Addresses that a program has unmapped stay free until it maps there again. The threads have stacks of the program's, and so
 * make no mappings of their own.
 */
#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include "check.h"

#define NR 40
#define STACK_BYTES 65536
#define HOLE_BYTES (4ul << 20)
#define NR_POLLED 300

static char stacks[NR][STACK_BYTES] __attribute__((aligned(4096)));
static char path[] = "/tmp/weft-lock-XXXXXX";
static char *hole;
static int p[2];

static void make_hole(void)
{
	hole = mmap(NULL, HOLE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(hole != MAP_FAILED);
	CHECK_SYS(munmap(hole, HOLE_BYTES));
}

static void hole_is_free(void)
{
	CHECK(mmap(hole, HOLE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
		   -1, 0) == hole);
	CHECK_SYS(munmap(hole, HOLE_BYTES));
}

static pthread_t start_on_own_stack(int i, void *(*fn)(void *))
{
	pthread_attr_t attr;
	pthread_t t;

	CHECK_PT(pthread_attr_init(&attr));
	CHECK_PT(pthread_attr_setstack(&attr, stacks[i], STACK_BYTES));
	CHECK_PT(pthread_create(&t, &attr, fn, NULL));
	pthread_attr_destroy(&attr);
	return t;
}

static void *nothing(void *arg)
{
	return arg;
}

/* In a call that keeps a kernel thread. */
static void *locks(void *arg)
{
	int fd = (int)CHECK_SYS(open(path, O_RDWR));

	CHECK_SYS(flock(fd, LOCK_SH));
	close(fd);
	return arg;
}

/* In one that needs much memory. */
static void *polls(void *arg)
{
	static struct pollfd fds[NR_POLLED];

	for (int i = 0; i < NR_POLLED; i++)
		fds[i] = (struct pollfd){ .fd = p[0], .events = POLLIN };
	CHECK_EQ(poll(fds, NR_POLLED, -1), NR_POLLED);
	return arg;
}

static void first_thread(void)
{
	make_hole();
	join(start_on_own_stack(0, nothing));
	hole_is_free();
}

static void many_threads(void)
{
	int fd = (int)CHECK_SYS(mkstemp(path));
	pthread_t t[NR];

	CHECK_SYS(flock(fd, LOCK_EX));
	CHECK_SYS(pipe(p));
	make_hole();
	for (int i = 0; i < NR; i++)
		t[i] = start_on_own_stack(i, i ? locks : polls);
	let_others_block();
	hole_is_free();
	CHECK_SYS(flock(fd, LOCK_UN));
	CHECK_EQ(write(p[1], "x", 1), 1);
	for (int i = 0; i < NR; i++)
		join(t[i]);
	hole_is_free();
	close(fd);
	close(p[0]);
	close(p[1]);
	unlink(path);
}

int main(void)
{
	pid_t pid;

	first_thread();
	ok("at the first thread");
	many_threads();
	ok("with more of them");
	pid = fork();
	if (pid == 0) {
		first_thread();
		_exit(finish());
	}
	reap(pid);
	ok("in a child");
	return finish();
}
