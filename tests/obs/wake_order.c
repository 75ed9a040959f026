// SPDX-License-Identifier: Apache-2.0
/* Threads that all wait at one barrier say in which order they came through. */
#include <pthread.h>
#include <stdio.h>

#define NR 8

static pthread_barrier_t barrier;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char order[NR + 1];
static int nr;

static void *comes(void *name)
{
	pthread_barrier_wait(&barrier);
	pthread_mutex_lock(&lock);
	order[nr++] = *(char *)name;
	pthread_mutex_unlock(&lock);
	return NULL;
}

int main(void)
{
	static char names[NR] = "abcdefgh";
	pthread_t threads[NR];

	pthread_barrier_init(&barrier, NULL, NR);
	for (int i = 0; i < NR; i++)
		if (pthread_create(&threads[i], NULL, comes, &names[i]))
			return 1;
	for (int i = 0; i < NR; i++)
		pthread_join(threads[i], NULL);
	return puts(order) < 0;
}
