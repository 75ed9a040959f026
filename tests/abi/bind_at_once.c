// SPDX-License-Identifier: Apache-2.0
/*
 * Threads that give up a right of their own at the same moment: each of them gets a kernel thread of its own, and nobody is
 * told that there is none.
 */
#include "check.h"

#include <sys/prctl.h>

#define THREADS 6
#define PROCESSES 40

static pthread_barrier_t all;

static void *give_up(void *arg)
{
	pthread_barrier_wait(&all);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		*(int *)arg = errno;
	else if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
		*(int *)arg = -1;
	return NULL;
}

/* The number of those that could not. */
static int try_once(int nr)
{
	pthread_t threads[THREADS];
	int errors[THREADS] = { 0 }, failed = 0;

	pthread_barrier_init(&all, NULL, (unsigned)nr);
	for (int i = 0; i < nr; i++)
		pthread_create(&threads[i], NULL, give_up, &errors[i]);
	for (int i = 0; i < nr; i++) {
		pthread_join(threads[i], NULL);
		failed += errors[i] != 0;
	}
	return failed;
}

int main(void)
{
	int status;

	for (int i = 0; i < PROCESSES; i++) {
		pid_t pid = fork();

		if (pid == 0)
			_exit(try_once(2 + i % (THREADS - 1)));
		CHECK(waitpid(pid, &status, 0) == pid);
		CHECK_EQ(status, 0);
	}
	ok("all of them");
	return finish();
}
