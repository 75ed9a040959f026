// SPDX-License-Identifier: Apache-2.0
/*
 * Threads made before main(): by the first code of the program that runs, before all constructors, and by a
 * constructor; as libraries for linear algebra do. They live on, and main() works with them.
 */
#include "check.h"

#include <semaphore.h>

static pthread_t first, second;
static sem_t asked, answered;
static int sum;          /* under `lock` */
static __thread int own; /* of each thread */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *serves(void *arg)
{
	for (int i = 0; i < 100; i++) {
		while (sem_wait(&asked))
			;
		own += (int)(intptr_t)arg;
		pthread_mutex_lock(&lock);
		sum++;
		pthread_mutex_unlock(&lock);
		sem_post(&answered);
	}
	return (void *)(intptr_t)own;
}

static void before_constructors(int argc, char **argv, char **envp)
{
	(void)argc;
	(void)argv;
	(void)envp;
	sem_init(&asked, 0, 0);
	sem_init(&answered, 0, 0);
	if (pthread_create(&first, NULL, serves, (void *)1))
		_exit(3);
}

__attribute__((section(".preinit_array"),
	       used)) static void (*const preinit)(int, char **, char **) = before_constructors;

__attribute__((constructor)) static void in_constructor(void)
{
	if (pthread_create(&second, NULL, serves, (void *)2))
		_exit(3);
	sem_post(&asked);
	while (sem_wait(&answered))
		;
}

int main(void)
{
	void *one = NULL, *two = NULL;

	CHECK_EQ(sum, 1);
	for (int i = 1; i < 200; i++) {
		sem_post(&asked);
		if (i % 50 == 0)
			while (sem_wait(&answered))
				;
	}
	CHECK(!pthread_join(first, &one));
	CHECK(!pthread_join(second, &two));
	CHECK_EQ((intptr_t)one, 100);
	CHECK_EQ((intptr_t)two, 200);
	CHECK_EQ(sum, 200);
	CHECK(getenv("PATH") != NULL);
	ok("threads made before main serve it");
	return finish();
}
