// SPDX-License-Identifier: Apache-2.0
/* Threads for the tests of what they exchange. */
#ifndef WEFT_TESTS_NATIVE_THREADS_H
#define WEFT_TESTS_NATIVE_THREADS_H

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

/* With a stack so small that there may be thousands. */
static inline pthread_t spawn(void *(*fn)(void *), void *arg)
{
	pthread_attr_t attr;
	pthread_t t;

	if (pthread_attr_init(&attr) || pthread_attr_setstacksize(&attr, 128ul << 10) ||
	    pthread_create(&t, &attr, fn, arg)) {
		perror("pthread_create");
		exit(2);
	}
	pthread_attr_destroy(&attr);
	return t;
}

static inline void join(pthread_t t)
{
	if (pthread_join(t, NULL)) {
		perror("pthread_join");
		exit(2);
	}
}

#endif
