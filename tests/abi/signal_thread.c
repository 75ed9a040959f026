// SPDX-License-Identifier: Apache-2.0
/*
 * pthread_kill runs the handler on that very thread: parked, reading, sleeping, spinning, locked.
 */
#include <semaphore.h>
#include "check.h"

#define KINDS 6

static int fds[2], quit, nr_ready;
static sem_t sem;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static __thread int handled_here;
static int handled[KINDS]; /* by thread */
static __thread int my_kind = -1;

static void on_signal(int sig)
{
	int saved = errno;

	(void)sig;
	handled_here++;
	errno = 1234;
	if (my_kind >= 0)
		ADD(&handled[my_kind], 1);
	else
		ADD(&abi_failures, 1);
	errno = saved;
}

static void *receives(void *arg)
{
	char c;

	my_kind = (int)(intptr_t)arg;
	ADD(&nr_ready, 1);
	switch (my_kind) {
	case 0:
		CHECK_EQ(read(fds[0], &c, 1), 1);
		break;
	case 1:
		while (sem_wait(&sem) == -1)
			CHECK_EQ(errno, EINTR);
		break;
	case 2:
		pthread_mutex_lock(&lock);
		pthread_mutex_unlock(&lock);
		break;
	case 3:
		pthread_mutex_lock(&lock);
		while (!LOAD(&quit))
			pthread_cond_wait(&cond, &lock);
		pthread_mutex_unlock(&lock);
		break;
	case 4:
		while (!LOAD(&quit))
			;
		break;
	default:
		while (!LOAD(&quit))
			sleep_ns(10 * MS);
		break;
	}
	CHECK_EQ(handled_here, handled[my_kind]);
	return NULL;
}

int main(void)
{
	pthread_t t[KINDS];
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = SA_RESTART };

	CHECK_SYS(pipe(fds));
	sem_init(&sem, 0, 0);
	CHECK_SYS(sigaction(SIGUSR1, &sa, NULL));
	pthread_mutex_lock(&lock);
	for (intptr_t i = 0; i < KINDS; i++)
		t[i] = start(receives, (void *)i);
	while (LOAD(&nr_ready) < KINDS)
		sched_yield();
	let_others_block();
	for (int round = 1; round <= 20; round++)
		for (int i = 0; i < KINDS; i++) {
			CHECK_PT(pthread_kill(t[i], SIGUSR1));
			while (LOAD(&handled[i]) < round && !LOAD(&abi_failures))
				sched_yield();
			CHECK_EQ(handled[i], round);
			if (round == 1)
				ok("handled by the thread it was sent to");
		}
	CHECK_EQ(handled_here, 0);
	ok("20 signals for each of six threads");

	STORE(&quit, 1);
	CHECK_EQ(write(fds[1], "x", 1), 1);
	sem_post(&sem);
	pthread_mutex_unlock(&lock);
	pthread_mutex_lock(&lock);
	pthread_cond_broadcast(&cond);
	pthread_mutex_unlock(&lock);
	for (int i = 0; i < KINDS; i++)
		join(t[i]);
	ok("and all of them went on with what they did");
	return finish();
}
