// SPDX-License-Identifier: Apache-2.0
/*
 * errno belongs to the thread, over yields, locks, blocking calls and preemption.
 */
#include <semaphore.h>
#include "check.h"

#define NR 32
#define ROUNDS 500

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static sem_t sem;
static int *errnos[NR];

static void *keeps_errno(void *arg)
{
	int mine = (int)(intptr_t)arg + 1;

	errnos[mine - 1] = &errno;
	for (int i = 0; i < ROUNDS; i++) {
		errno = mine;
		sched_yield();
		if (errno != mine)
			CHECK_EQ(errno, mine);
		pthread_mutex_lock(&lock);
		if (i % 16 == 0)
			sched_yield();
		pthread_mutex_unlock(&lock);
		sem_wait(&sem);
		sem_post(&sem);
		if (errno != mine)
			CHECK_EQ(errno, mine);
		if (i % 4 == 0) {
			/* A failing call sets it here and nowhere else. */
			CHECK_EQ(close(-1), -1);
			CHECK_EQ(errno, EBADF);
			sched_yield();
			CHECK_EQ(errno, EBADF);
		}
		CHECK(&errno == errnos[mine - 1]);
	}
	return NULL;
}

int main(void)
{
	pthread_t t[NR];

	sem_init(&sem, 0, 2);
	errno = 77;
	for (intptr_t i = 0; i < NR; i++)
		t[i] = start(keeps_errno, (void *)i);
	for (int i = 0; i < NR; i++)
		join(t[i]);
	for (int i = 0; i < NR; i++)
		CHECK(errnos[i] && errnos[i] != &errno);
	ok("errno of 32 threads");
	return finish();
}
