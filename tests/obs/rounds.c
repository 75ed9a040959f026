// SPDX-License-Identifier: Apache-2.0
/* For each line on standard input, two threads wake each other a thousand times; then it answers with a line. */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>

#define ROUNDS 1000

static sem_t to, back;

static void *answer(void *arg)
{
	for (;;) {
		while (sem_wait(&to) < 0)
			;
		sem_post(&back);
	}
	return arg;
}

int main(void)
{
	char line[16];
	pthread_t t;

	if (pthread_create(&t, NULL, answer, NULL))
		return 1;
	printf("ready\n");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		for (int i = 0; i < ROUNDS; i++) {
			sem_post(&to);
			while (sem_wait(&back) < 0)
				;
		}
		printf("done\n");
		fflush(stdout);
	}
	return 0;
}
