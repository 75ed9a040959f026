// SPDX-License-Identifier: Apache-2.0
/*
 * One runtime with threads of its own, by the names that the workloads use: start(), spawn(), join(), give_way(), and tokens,
 * which are a mutex and a condition, or what stands for them. fork_call() and join_call() are its means for trees of calls: only libweft
 * has others for that than threads.
 *
 * Compiled once for each runtime, with one of the macros below; libweft without any.
 */
#ifndef BENCH_PEERS_RUNTIME_H
#define BENCH_PEERS_RUNTIME_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#if defined(PEER_MASSIVETHREADS)
#include <myth/myth.h>

typedef void *body;
typedef myth_thread_t thread;

static inline void start(int nr_workers)
{
	char text[16];

	(void)snprintf(text, sizeof(text), "%d", nr_workers);
	(void)setenv("MYTH_NUM_WORKERS", text, 1);
	myth_init();
	if (myth_get_num_workers() != nr_workers)
		abort();
}

static inline thread spawn(body (*fn)(void *arg), void *arg)
{
	return myth_create(fn, arg);
}

static inline void join(thread t)
{
	(void)myth_join(t, NULL);
}

static inline void give_way(void)
{
	myth_yield();
}

struct token {
	myth_mutex_t mutex;
	myth_cond_t is_there;
	int nr;
};

static inline void token_init(struct token *t)
{
	(void)myth_mutex_init(&t->mutex, NULL);
	(void)myth_cond_init(&t->is_there, NULL);
	t->nr = 0;
}

static inline void give(struct token *t)
{
	(void)myth_mutex_lock(&t->mutex);
	t->nr++;
	(void)myth_cond_signal(&t->is_there);
	(void)myth_mutex_unlock(&t->mutex);
}

static inline void take(struct token *t)
{
	(void)myth_mutex_lock(&t->mutex);
	while (!t->nr)
		(void)myth_cond_wait(&t->is_there, &t->mutex);
	t->nr--;
	(void)myth_mutex_unlock(&t->mutex);
}

#elif defined(PEER_ARGOBOTS)
#include <abt.h>

#define MAX_WORKERS 64

typedef void body;
typedef ABT_thread thread;

extern ABT_pool pools[MAX_WORKERS]; /* threads.c has it */

/* One pool for each worker, its own first; a worker without work takes from another at random. */
static inline void start(int nr_workers)
{
	ABT_xstream streams[MAX_WORKERS];

	if (nr_workers > MAX_WORKERS)
		abort();
	(void)ABT_init(0, NULL);
	(void)ABT_xstream_self(&streams[0]);
	for (int i = 0; i < nr_workers; i++)
		(void)ABT_pool_create_basic(ABT_POOL_FIFO, ABT_POOL_ACCESS_MPMC, ABT_TRUE,
					    &pools[i]);
	for (int i = 0; i < nr_workers; i++) {
		ABT_pool own_first[MAX_WORKERS];
		ABT_sched sched;

		for (int j = 0; j < nr_workers; j++)
			own_first[j] = pools[(i + j) % nr_workers];
		(void)ABT_sched_create_basic(nr_workers > 1 ? ABT_SCHED_RANDWS : ABT_SCHED_BASIC,
					     nr_workers, own_first, ABT_SCHED_CONFIG_NULL, &sched);
		if (i)
			(void)ABT_xstream_create(sched, &streams[i]);
		else
			(void)ABT_xstream_set_main_sched(streams[0], sched);
	}
}

static inline thread spawn(body (*fn)(void *arg), void *arg)
{
	ABT_thread t;
	int rank;

	(void)ABT_self_get_xstream_rank(&rank);
	(void)ABT_thread_create(pools[rank], fn, arg, ABT_THREAD_ATTR_NULL, &t);
	return t;
}

static inline void join(thread t)
{
	(void)ABT_thread_free(&t);
}

static inline void give_way(void)
{
	(void)ABT_self_yield();
}

struct token {
	ABT_mutex mutex;
	ABT_cond is_there;
	int nr;
};

static inline void token_init(struct token *t)
{
	(void)ABT_mutex_create(&t->mutex);
	(void)ABT_cond_create(&t->is_there);
	t->nr = 0;
}

static inline void give(struct token *t)
{
	(void)ABT_mutex_lock(t->mutex);
	t->nr++;
	(void)ABT_cond_signal(t->is_there);
	(void)ABT_mutex_unlock(t->mutex);
}

static inline void take(struct token *t)
{
	(void)ABT_mutex_lock(t->mutex);
	while (!t->nr)
		(void)ABT_cond_wait(t->is_there, t->mutex);
	t->nr--;
	(void)ABT_mutex_unlock(t->mutex);
}

#elif defined(PEER_STATE_THREADS)
#include <st.h>

typedef void *body;
typedef st_thread_t thread;

/* It has one worker, whatever is asked for. */
static inline void start(int nr_workers)
{
	(void)nr_workers;
	if (st_init() != 0)
		abort();
}

static inline thread spawn(body (*fn)(void *arg), void *arg)
{
	return st_thread_create(fn, arg, 1, 0);
}

static inline void join(thread t)
{
	(void)st_thread_join(t, NULL);
}

static inline void give_way(void)
{
	st_thread_yield();
}

/* Nothing interrupts its threads, so its condition needs no mutex. */
struct token {
	st_cond_t is_there;
	int nr;
};

static inline void token_init(struct token *t)
{
	t->is_there = st_cond_new();
	t->nr = 0;
}

static inline void give(struct token *t)
{
	t->nr++;
	(void)st_cond_signal(t->is_there);
}

static inline void take(struct token *t)
{
	while (!t->nr)
		(void)st_cond_wait(t->is_there);
	t->nr--;
}

#else
#include <weft/weft.h>

#include <pthread.h>

#define HAS_TASKS

typedef int body;
typedef weft_thread *thread;

/* WEFT_WORKERS says how many. */
static inline void start(int nr_workers)
{
	(void)nr_workers;
}

static inline thread spawn(body (*fn)(void *arg), void *arg)
{
	weft_thread *t;

	if (weft_thread_spawn(fn, arg, NULL, &t) != 0)
		abort();
	return t;
}

static inline void join(thread t)
{
	(void)weft_thread_join(t, NULL, WEFT_NEVER);
}

static inline void give_way(void)
{
	weft_thread_yield();
}

struct token {
	pthread_mutex_t mutex;
	pthread_cond_t is_there;
	int nr;
};

static inline void token_init(struct token *t)
{
	(void)pthread_mutex_init(&t->mutex, NULL);
	(void)pthread_cond_init(&t->is_there, NULL);
	t->nr = 0;
}

static inline void give(struct token *t)
{
	(void)pthread_mutex_lock(&t->mutex);
	t->nr++;
	(void)pthread_cond_signal(&t->is_there);
	(void)pthread_mutex_unlock(&t->mutex);
}

static inline void take(struct token *t)
{
	(void)pthread_mutex_lock(&t->mutex);
	while (!t->nr)
		(void)pthread_cond_wait(&t->is_there, &t->mutex);
	t->nr--;
	(void)pthread_mutex_unlock(&t->mutex);
}

typedef weft_task call;
typedef void call_body;

static inline void fork_call(call *c, call_body (*fn)(void *arg), void *arg)
{
	weft_task_fork(c, fn, arg);
}

static inline void join_call(call *c)
{
	weft_task_join(c);
}
#endif

#ifndef HAS_TASKS
typedef thread call;
typedef body call_body;

static inline void fork_call(call *c, call_body (*fn)(void *arg), void *arg)
{
	*c = spawn(fn, arg);
}

static inline void join_call(call *c)
{
	join(*c);
}
#endif

#endif
