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
 * Have fn(arg) called by somebody, at the latest when t is joined. Without memory for the first or a further 1,024
 * tasks it is called at once. fn must return: no exception, longjmp() or pthread_exit() may leave it.
 *
 * Where:   any thread, not in a signal handler. Never waits.
 * Order:   what was done before it is seen by fn.
 * Returns: nothing; cannot fail.
 * Owns:    t is borrowed until the join, and stays where it is. arg is passed on as it is.
 * Cancel:  fn is in the caller's scopes.
 * After:   spawn of Cilk, on the deque of Chase and Lev (SPAA 2005).
 */
WEFT_API void weft_task_fork(weft_task *t, void (*fn)(void *), void *arg);

/*
 * fn of t has returned when this does: it is called here if nobody has taken it. Once; the task that was forked
 * last is the fastest to join first.
 *
 * Where:   the thread that forked t, not in a signal handler. Parks if another thread has taken it and is not done.
 * Order:   what fn did is seen afterwards.
 * Returns: nothing; cannot fail.
 * Owns:    t is the caller's again.
 * Cancel:  no scope ends it; is no cancellation point of pthread_cancel().
 * After:   sync of Cilk, for one task.
 */
WEFT_API void weft_task_join(weft_task *t);

/*
 * Call fn(from, to, arg) for parts of [begin, end) that cover it, each of at most grain numbers, in no order,
 * beside each other. grain 0: some parts for each worker. Returns when all have returned.
 *
 * Where:   any thread, not in a signal handler. Parks as weft_task_join().
 * Order:   what fn did is seen afterwards.
 * Returns: nothing; cannot fail.
 * Owns:    arg is passed on as it is.
 * Cancel:  as weft_task_join().
 * After:   parallel_for of oneTBB.
 */
WEFT_API void weft_task_for(size_t begin, size_t end, size_t grain,
			    void (*fn)(size_t from, size_t to, void *arg), void *arg);

WEFT_END

#endif
