// SPDX-License-Identifier: Apache-2.0
/*
 * A token that one thread hands to another: by a semaphore, or by a mutex and a condition.
 *
 * Used by: pingpong.c, ring.c.
 */
#ifndef BENCH_TOKEN_H
#define BENCH_TOKEN_H

#include <pthread.h>
#include <stdbool.h>

#include "threads.h"

struct token {
	bool is_cond;
	struct face_sem sem;
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	int nr;
};

static inline void token_init(struct token *t, bool is_cond)
{
	t->is_cond = is_cond;
	t->nr = 0;
	if (face_sem_init(&t->sem) != 0)
		bench_cannot("have memory", 12);
	pthread_mutex_init(&t->mutex, NULL);
	pthread_cond_init(&t->cond, NULL);
}

static inline void token_give(struct token *t)
{
	if (!t->is_cond) {
		face_sem_post(&t->sem);
		return;
	}
	pthread_mutex_lock(&t->mutex);
	t->nr++;
	pthread_cond_signal(&t->cond);
	pthread_mutex_unlock(&t->mutex);
}

static inline void token_take(struct token *t)
{
	if (!t->is_cond) {
		face_sem_wait(&t->sem);
		return;
	}
	pthread_mutex_lock(&t->mutex);
	while (!t->nr)
		pthread_cond_wait(&t->cond, &t->mutex);
	t->nr--;
	pthread_mutex_unlock(&t->mutex);
}

#endif
