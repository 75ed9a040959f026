// SPDX-License-Identifier: Apache-2.0
/*
 * A handler that calls sem_post and write wakes threads, whatever it interrupted.
 */
#include <semaphore.h>
#include "check.h"

#define ROUNDS 100

static sem_t sem;
static int fds[2], stop, nr_handled;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void on_signal(int sig)
{
	int saved = errno;

	(void)sig;
	sem_post(&sem);
	if (write(fds[1], "x", 1) != 1)
		ADD(&abi_failures, 1);
	ADD(&nr_handled, 1);
	errno = saved;
}

static void *waits(void *arg)
{
	for (int i = 0; i < ROUNDS; i++)
		while (sem_wait(&sem) == -1)
			CHECK_EQ(errno, EINTR);
	return arg;
}

static void *reads(void *arg)
{
	char c;

	for (int i = 0; i < ROUNDS; i++)
		CHECK_EQ(read(fds[0], &c, 1), 1);
	return arg;
}

static void *is_interrupted(void *arg)
{
	while (!LOAD(&stop)) {
		pthread_mutex_lock(&lock);
		free(malloc(100));
		if (arg)
			sched_yield();
		pthread_mutex_unlock(&lock);
	}
	return arg;
}

int main(void)
{
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	pthread_t t[2], waiter, reader;

	sem_init(&sem, 0, 0);
	CHECK_SYS(pipe(fds));
	sigaction(SIGUSR1, &sa, NULL);
	waiter = start(waits, NULL);
	reader = start(reads, NULL);
	for (int i = 0; i < 2; i++)
		t[i] = start(is_interrupted, i ? fds : NULL);
	for (int i = 0; i < ROUNDS; i++) {
		/* Standard signals merge: send the next one only when this one was handled. */
		CHECK_PT(pthread_kill(t[i % 2], SIGUSR1));
		while (LOAD(&nr_handled) <= i)
			sched_yield();
	}
	join(waiter);
	join(reader);
	ok("100 posts and 100 bytes from a handler");
	STORE(&stop, 1);
	join(t[0]);
	join(t[1]);
	return finish();
}
