// SPDX-License-Identifier: Apache-2.0
/*
 * More threads at once than the kernel has mappings for by default (two per stack of libc's, 65,530 in all).
 * Only under weft: natively the process ends at 32,000.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define GUARD_INSTALL 102
#define SKIPPED 77

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t is_open = PTHREAD_COND_INITIALIZER, all_there = PTHREAD_COND_INITIALIZER;
static long nr_there;
static int open_now;

static void *waits(void *arg)
{
	pthread_mutex_lock(&lock);
	nr_there++;
	pthread_cond_signal(&all_there);
	while (!open_now)
		pthread_cond_wait(&is_open, &lock);
	pthread_mutex_unlock(&lock);
	return arg;
}

static int has_guard_regions(void)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p != MAP_FAILED && madvise(p, 4096, GUARD_INSTALL) == 0;
}

int main(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[1]) : 40000;
	pthread_t *t = calloc((size_t)n, sizeof(*t));

	if (!has_guard_regions()) {
		printf("this kernel has no guard regions\n");
		return SKIPPED;
	}
	for (long i = 0; i < n; i++) {
		int error = pthread_create(&t[i], NULL, waits, NULL);

		if (error) {
			printf("thread %ld: %s\n", i, strerror(error));
			return 1;
		}
	}
	pthread_mutex_lock(&lock);
	while (nr_there < n)
		pthread_cond_wait(&all_there, &lock);
	open_now = 1;
	pthread_cond_broadcast(&is_open);
	pthread_mutex_unlock(&lock);
	for (long i = 0; i < n; i++)
		pthread_join(t[i], NULL);
	printf("%ld threads\n", n);
	free(t);
	return 0;
}
