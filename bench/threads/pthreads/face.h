// SPDX-License-Identifier: Apache-2.0
/*
 * The threads of the workloads, as the C library makes them. libweft/face.h has the same names on libweft's own functions;
 * meson.build chooses, so that one source makes both programs.
 *
 * Used by: threads.h and everything below it. A function that fails returns its errno.
 */
#ifndef BENCH_FACE_H
#define BENCH_FACE_H

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define FACE_PROGRAM "bench-threads"

/* The result of a thread's function: 0. */
typedef void *face_ret;

struct face_thread {
	pthread_t pthread;
};

/* Why the threads are not those that this program is about, or NULL. */
static inline const char *face_why_not(void)
{
	return NULL;
}

/* stack_bytes: 0: as it comes. */
static inline int face_start(struct face_thread *out, face_ret (*fn)(void *), void *arg,
			     size_t stack_bytes)
{
	pthread_attr_t attr;
	int error;

	pthread_attr_init(&attr);
	if (stack_bytes)
		(void)pthread_attr_setstacksize(&attr, stack_bytes);
	error = pthread_create(&out->pthread, &attr, fn, arg);
	pthread_attr_destroy(&attr);
	return error;
}

static inline int face_join(struct face_thread t)
{
	return pthread_join(t.pthread, NULL);
}

static inline void face_yield(void)
{
	(void)sched_yield();
}

static inline void face_sleep(int64_t ns)
{
	const struct timespec ts = { .tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000 };

	(void)nanosleep(&ts, NULL);
}

/* Holds one at most, which is all that the workloads put in. */
struct face_sem {
	sem_t sem;
};

static inline int face_sem_init(struct face_sem *s)
{
	return sem_init(&s->sem, 0, 0);
}

static inline void face_sem_post(struct face_sem *s)
{
	(void)sem_post(&s->sem);
}

static inline void face_sem_wait(struct face_sem *s)
{
	while (sem_wait(&s->sem) < 0)
		;
}

/* Once set, it stays so. */
struct face_event {
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	bool is_set;
};

#define FACE_EVENT_INIT                                                                            \
	{                                                                                          \
		PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false                         \
	}

static inline void face_event_set(struct face_event *e)
{
	pthread_mutex_lock(&e->mutex);
	e->is_set = true;
	pthread_cond_broadcast(&e->cond);
	pthread_mutex_unlock(&e->mutex);
}

static inline void face_event_wait(struct face_event *e)
{
	pthread_mutex_lock(&e->mutex);
	while (!e->is_set)
		pthread_cond_wait(&e->cond, &e->mutex);
	pthread_mutex_unlock(&e->mutex);
}

#endif
