// SPDX-License-Identifier: Apache-2.0
/* Shared by the models of events, channels and select: threads of ours, and kernel threads that are not. */
#ifndef WF_TESTS_MODEL_SYNC_H
#define WF_TESTS_MODEL_SYNC_H

#include "machine.h"
#include "model.h"

#include <errno.h>
#include <string.h>

#define MAX_THREADS 4
static struct wf_thread *threads[MAX_THREADS];
static uint32_t nr_threads;

/* --- the cast --- */

/* The thread that we are; NULL on a stranger. */
static struct wf_thread *me(void)
{
	return model_gs ? wf_self() : NULL;
}

/* A handler runs on the way out, and the wait begins anew. */
#define THROUGH_SIGNALS(call)                                                                      \
	__extension__({                                                                            \
		int ret_;                                                                          \
		while ((ret_ = (call)) == -EINTR)                                                  \
			(void)wf_fetch_and(&me()->attention, ~WF_ATT_SIGNAL);                      \
		ret_;                                                                              \
	})

static void begin(uint32_t nr_workers)
{
	machine_reset(nr_workers);
	for (uint32_t i = 0; i < nr_workers; i++)
		(void)machine_kthread(&wf_rt.workers[i]);
	nr_threads = 0;
}

static void add(int worker, void (*program)(void *), void *arg)
{
	struct wf_thread *t = machine_thread(program, arg);

	threads[nr_threads++] = t;
	machine_queue(&wf_rt.workers[worker], t);
}

/* No waker of a wait that is over reaches the thread's next one. */
static __attribute__((unused)) void sleep_undisturbed(void)
{
	wf_park_begin(0, WF_WAIT_SLEEP, 0);
	model_expect(wf_park(model_now() + WF_MS) == WF_WAKE_TIMEOUT,
		     "a waker came when its wait was over");
}

/* The deadlines of all threads are over, at any moment. */
static __attribute__((unused)) void expire(void *arg)
{
	model_step();
	(void)wf_wheel_expire(&wf_rt.wheel, model_now() + WF_SEC);
}

static __attribute__((unused)) void interrupt_first(void *arg)
{
	model_step();
	(void)wf_fetch_or(&threads[0]->attention, WF_ATT_SIGNAL);
	(void)wf_unpark(threads[0], WF_WAKE_INTERRUPTED);
}

/* A signal that another thread has taken by then. */
static __attribute__((unused)) void interrupt_first_in_vain(void *arg)
{
	model_step();
	(void)wf_unpark(threads[0], WF_WAKE_INTERRUPTED);
}

#endif
