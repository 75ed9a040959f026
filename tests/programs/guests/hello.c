// SPDX-License-Identifier: Apache-2.0
/* Compiled by ../smoke.py with a compiler under test; prints a sum that several threads made. */
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long sum;

static void *add(void *arg)
{
	for (int i = 0; i < 1000; i++) {
		pthread_mutex_lock(&lock);
		sum += (long)arg;
		pthread_mutex_unlock(&lock);
	}
	return NULL;
}

int main(void)
{
	pthread_t threads[10];

	for (long i = 0; i < 10; i++)
		if (pthread_create(&threads[i], NULL, add, (void *)i))
			return 1;
	for (int i = 0; i < 10; i++)
		pthread_join(threads[i], NULL);
	printf("%ld\n", sum);
	return 0;
}
