// SPDX-License-Identifier: Apache-2.0
/* More threads than usual in calls that nothing but the kernel can wait for: a System V semaphore. */
#include <limits.h>
#include <sys/sem.h>
#include "check.h"

#define NR 4500
#define NR_MAX_VALUE 32767

static int set;

static void *waits(void *arg)
{
	struct sembuf op = { .sem_op = -1 };

	CHECK_SYS(semop(set, &op, 1));
	return arg;
}

int main(void)
{
	static pthread_t t[NR];
	struct sembuf op = { .sem_op = NR }, look = { .sem_num = 1, .sem_op = -1 };
	pthread_attr_t attr;
	int nr = 0;

	_Static_assert(NR <= NR_MAX_VALUE, "of a semaphore");
	CHECK_PT(pthread_attr_init(&attr));
	CHECK_PT(pthread_attr_setstacksize(&attr, PTHREAD_STACK_MIN));
	set = (int)CHECK_SYS(semget(IPC_PRIVATE, 2, 0600));
	while (nr < NR && pthread_create(&t[nr], &attr, waits, NULL) == 0)
		nr++;
	/* All but those that have not got there yet. */
	let_others_block();
	op.sem_op = (short)nr;
	CHECK_SYS(semop(set, &op, 1));
	for (int i = 0; i < nr; i++)
		join(t[i]);
	look.sem_flg = IPC_NOWAIT;
	CHECK_ERRNO(semop(set, &look, 1), EAGAIN);
	CHECK_SYS(semctl(set, 0, IPC_RMID));
	if (nr < NR)
		return EXIT_SKIP; /* so many threads are not allowed here */
	ok("4,500 threads in semop()");
	return finish();
}
