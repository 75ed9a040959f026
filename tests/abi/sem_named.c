// SPDX-License-Identifier: Apache-2.0
/*
 * Named semaphores: open, exclusive open, use from threads and from a forked child, unlink.
 */
#include <fcntl.h>
#include <semaphore.h>
#include "check.h"

static sem_t *there, *back;

static void *answers(void *arg)
{
	for (int i = 0; i < 200; i++) {
		CHECK_SYS(sem_wait(there));
		CHECK_SYS(sem_post(back));
	}
	return arg;
}

static void asks(void)
{
	for (int i = 0; i < 200; i++) {
		CHECK_SYS(sem_post(there));
		CHECK_SYS(sem_wait(back));
	}
}

int main(void)
{
	char names[2][64];

	for (int i = 0; i < 2; i++) {
		snprintf(names[i], sizeof(names[i]), "/weft-abi-%d-%d", (int)getpid(), i);
		sem_unlink(names[i]);
	}
	there = sem_open(names[0], O_CREAT | O_EXCL, 0600, 0);
	back = sem_open(names[1], O_CREAT | O_EXCL, 0600, 0);
	CHECK(there != SEM_FAILED && back != SEM_FAILED);
	CHECK(sem_open(names[0], O_CREAT | O_EXCL, 0600, 0) == SEM_FAILED && errno == EEXIST);
	CHECK(sem_open(names[0], 0) == there);
	CHECK_SYS(sem_close(there));
	ok("open");

	pthread_t t = start(answers, NULL);
	asks();
	join(t);
	ok("between threads");

	pid_t child = fork();
	if (child == 0) {
		join(start(answers, NULL));
		_exit(finish());
	}
	asks();
	reap(child);
	ok("with a thread of a child");

	CHECK_SYS(sem_close(there));
	CHECK_SYS(sem_close(back));
	for (int i = 0; i < 2; i++)
		CHECK_SYS(sem_unlink(names[i]));
	CHECK(sem_open(names[0], 0) == SEM_FAILED && errno == ENOENT);
	ok("close and unlink");
	return finish();
}
