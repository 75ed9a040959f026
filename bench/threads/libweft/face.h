// SPDX-License-Identifier: Apache-2.0
/*
 * The threads of the workloads, as a program makes them that is linked with libweft: spawn, yield, sleep, channels of tokens,
 * events. See pthreads/face.h. Mutexes and conditions are libc's in both: libweft has none of its own, since those park already.
 */
#ifndef BENCH_FACE_H
#define BENCH_FACE_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weft/weft.h>

#define FACE_PROGRAM "bench-threads-native"

typedef int face_ret;

struct face_thread {
	weft_thread *thread;
};

static inline const char *face_why_not(void)
{
	const char *why;

	return weft_mode(&why) == WEFT_MODE_ATTACHED ? NULL : why;
}

static inline int face_start(struct face_thread *out, face_ret (*fn)(void *), void *arg,
			     size_t stack_bytes)
{
	const struct weft_thread_opts opts = { .size = sizeof(opts), .stack_bytes = stack_bytes };

	return -weft_thread_spawn(fn, arg, &opts, &out->thread);
}

static inline int face_join(struct face_thread t)
{
	return -weft_thread_join(t.thread, NULL, WEFT_NEVER);
}

static inline void face_yield(void)
{
	weft_thread_yield();
}

static inline void face_sleep(int64_t ns)
{
	(void)weft_sleep_until(weft_now() + ns);
}

/* A channel of tokens is the semaphore of libweft. */
struct face_sem {
	weft_chan *tokens;
};

static inline int face_sem_init(struct face_sem *s)
{
	s->tokens = weft_chan_new(0, 1, "token");
	return s->tokens ? 0 : ENOMEM;
}

static inline void face_sem_post(struct face_sem *s)
{
	(void)weft_chan_give(s->tokens, WEFT_NEVER);
}

static inline void face_sem_wait(struct face_sem *s)
{
	(void)weft_chan_take(s->tokens, WEFT_NEVER);
}

struct face_event {
	weft_event event;
};

#define FACE_EVENT_INIT                                                                            \
	{                                                                                          \
		{                                                                                  \
			{                                                                          \
				0                                                                  \
			}                                                                          \
		}                                                                                  \
	}

static inline void face_event_set(struct face_event *e)
{
	weft_event_set(&e->event);
}

static inline void face_event_wait(struct face_event *e)
{
	(void)weft_event_wait(&e->event, WEFT_NEVER);
}

#endif
