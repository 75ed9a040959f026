/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks: function calls that another worker may take over. See weft_task(3).
 *
 *	static void fib(void *arg)
 *	{
 *		struct fib *f = arg, left = { f->n - 1 }, right = { f->n - 2 };
 *		weft_task t;
 *
 *		if (f->n < 2)
 *			return;
 *		weft_task_fork(&t, fib, &left);
 *		fib(&right);
 *		weft_task_join(&t);
 *		f->result = left.result + right.result;
 *	}
 *
 * A task that nobody has taken when it is joined is called there, as any function. So a fork is not a promise that something
 * runs beside: a task must not wait for one that is forked after it, nor for its caller. It may do all else that a thread may:
 * use thread-local variables and errno, which are those of the thread that runs it from its start to its end, allocate, take
 * locks, wait. While it waits its worker does something else, and a join that waits never runs another task meanwhile.
 *
 * Where: any thread, attached or native, and the main thread before there is another; not in a signal handler.
 */
#ifndef WEFT_TASK_H
#define WEFT_TASK_H

#include <weft/base.h>

WEFT_BEGIN

/* In the caller's frame, usually; it need not be initialised. Must stay where it is until it is joined. */
typedef struct weft_task {
	void (*fn)(void *);
	void *arg;
	uint64_t opaque[4];
} weft_task;

/*
 * Have fn(arg) called by somebody, at the latest when the task is joined. Without memory for the first or a further 1,024 tasks
 * it is called at once. fn must return: no exception, longjmp() or pthread_exit() may leave it.
 */
WEFT_API void weft_task_fork(weft_task *t, void (*fn)(void *), void *arg);

/*
 * fn has returned when this does. By the thread that forked it, once; the one forked last is the fastest to join first.
 * Never ended by a scope.
 */
WEFT_API void weft_task_join(weft_task *t);

/*
 * Call fn(from, to, arg) for parts of [begin, end) that cover it, each of at most grain numbers, in no order, beside each other.
 * grain 0: some parts for each worker. Returns when all have returned.
 */
WEFT_API void weft_task_for(size_t begin, size_t end, size_t grain,
			    void (*fn)(size_t from, size_t to, void *arg), void *arg);

WEFT_END

#endif
