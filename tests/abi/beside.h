// SPDX-License-Identifier: Apache-2.0
/*
 * Two threads that pass a turn to each other while others make calls: who makes a call must not keep them from going on.
 *
 * Included by: programs that show what one system call after the other does.
 */
#ifndef WEFT_TESTS_ABI_BESIDE_H
#define WEFT_TESTS_ABI_BESIDE_H

#include "check.h"

#define CALL(nr, ...) syscall(SYS_##nr, ##__VA_ARGS__)

static struct {
	pthread_mutex_t lock;
	pthread_cond_t cond;
	int nr_turns; /* atomic outside */
	int is_over;
	pthread_t threads[2];
} beside = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0, { 0 } };

static void *take_turns_beside(void *arg)
{
	int mine = (int)(intptr_t)arg;

	pthread_mutex_lock(&beside.lock);
	while (!beside.is_over) {
		if (beside.nr_turns % 2 == mine) {
			ADD(&beside.nr_turns, 1);
			pthread_cond_signal(&beside.cond);
		} else {
			pthread_cond_wait(&beside.cond, &beside.lock);
		}
	}
	pthread_mutex_unlock(&beside.lock);
	return NULL;
}

static inline void start_beside(void)
{
	for (intptr_t i = 0; i < 2; i++)
		beside.threads[i] = start(take_turns_beside, (void *)i);
}

static inline void stop_beside(void)
{
	pthread_mutex_lock(&beside.lock);
	beside.is_over = 1;
	pthread_cond_broadcast(&beside.cond);
	pthread_mutex_unlock(&beside.lock);
	for (int i = 0; i < 2; i++)
		join(beside.threads[i]);
}

/* Makes the calls of fn in a thread of its own, again and again until the two beside it have gone on. */
static void *call_beside(void *arg)
{
	void (**fn)(void) = (void (**)(void))arg;
	int first = LOAD(&beside.nr_turns);

	do
		(*fn)();
	while (LOAD(&beside.nr_turns) == first && LOAD(&abi_failures) == 0);
	return NULL;
}

static inline void calls(void (*fn)(void), const char *what)
{
	join(start(call_beside, &fn));
	ok(what);
}

/* A call that this kernel lacks, or that a container or a user without rights is refused. */
static inline int is_refused(long ret)
{
	return ret == -1 &&
	       (errno == ENOSYS || errno == EPERM || errno == EACCES || errno == EOPNOTSUPP);
}

#endif
