// SPDX-License-Identifier: Apache-2.0
/* Threads of weft/thread.h for the tests of it: functions for them, and what one returns. */
#ifndef WEFT_TESTS_NATIVE_SPAWNED_H
#define WEFT_TESTS_NATIVE_SPAWNED_H

#include "tap.h"

#include <limits.h>
#include <semaphore.h>
#include <weft/weft.h>

static sem_t go, ready;

static inline int returns(void *arg)
{
	return (int)(long)arg;
}

static inline int waits_for_go(void *arg)
{
	sem_post(&ready);
	while (sem_wait(&go))
		;
	return (int)(long)arg;
}

static inline int result_of(weft_fn *fn, void *arg, const struct weft_thread_opts *opts)
{
	weft_thread *t;
	int result = INT_MIN, ret = weft_thread_spawn(fn, arg, opts, &t);

	if (ret)
		return ret;
	CHECK_EQ(weft_thread_join(t, &result, WEFT_NEVER), 0);
	return result;
}

#endif
