/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fibers: further stacks of a thread, which it goes to and comes back from by itself. See weft_fiber(3).
 *
 *	static void *numbers(void *first)
 *	{
 *		for (long i = (long)first; i < LONG_MAX; i++)
 *			weft_fiber_yield((void *)i);
 *		return NULL;
 *	}
 *
 *	weft_fiber *f = weft_fiber_new(numbers, NULL);
 *	long a = (long)weft_fiber_resume(f, (void *)7), b = (long)weft_fiber_resume(f, NULL);	(7 and 8)
 *
 * A fiber is the thread's that made it: its thread-local variables, its errno, its locks. It never runs on another one. A
 * fiber that waits, in read() say, waits with the whole thread.
 *
 * Resume and yield are a pair: yield goes back to the fiber that resumed. Transfer is not: a fiber that was left by a transfer
 * is gone on with by a transfer only, one that was left by a yield by a resume only, and one that has resumed another waits
 * for it. A breach of one of these rules ends the process with abort() and a line that names both fibers and the rule.
 *
 * Where: any thread, attached or native, and the main thread before there is another; not in a signal handler, which may run
 * on a fiber's stack, though. C++: an exception that leaves fn terminates the program; weft.hpp carries it to the resumer.
 */
#ifndef WEFT_FIBER_H
#define WEFT_FIBER_H

#include <weft/base.h>

WEFT_BEGIN

typedef struct weft_fiber weft_fiber;

struct weft_fiber_opts {
	size_t size;        /* of this structure */
	const char *name;   /* in messages; NULL: its address is shown */
	size_t stack_bytes; /* rounded up to a power of two; 0: WEFT_FIBER_STACK */
};

#define WEFT_FIBER_STACK                                                                           \
	((size_t)256 << 10) /* addresses: memory is used as the fiber comes to it */
#define WEFT_FIBER_MIN_STACK ((size_t)16 << 10)

/*
 * A fiber of this thread that will run fn. The first value that is passed to it is fn's argument, and what fn returns
 * is what the last resume returns. Nothing runs yet. Below the stack lies a guard of 16 KiB.
 *
 * opts: NULL for the usual. Returns: NULL where there is no memory left. Owns: the caller, until weft_fiber_free().
 */
WEFT_API weft_fiber *weft_fiber_new(void *(*fn)(void *first), const struct weft_fiber_opts *opts);

/*
 * Go on in f, which is new or has yielded, until it yields or returns. value: what its yield returns there.
 *
 * Returns: what f passes to weft_fiber_yield(), or what its fn returns: then weft_fiber_is_done().
 */
WEFT_API void *weft_fiber_resume(weft_fiber *f, void *value);

/* Go back to the fiber that has resumed this one, where weft_fiber_resume() returns value. Returns: what the next resume passes. */
WEFT_API void *weft_fiber_yield(void *value);

/*
 * Go on in f, which is new or was left by a transfer; NULL: the thread's own stack. This fiber then waits for a transfer
 * to it. When a fiber that nobody resumed returns, the thread goes on on its own stack; has that one resumed a fiber, in that
 * one, and so on.
 *
 * Returns: what is passed by the transfer to here.
 */
WEFT_API void *weft_fiber_transfer(weft_fiber *f, void *value);

/* The fiber that runs; NULL on the thread's own stack. */
WEFT_API weft_fiber *weft_fiber_self(void);

/* Has its fn returned? */
WEFT_API bool weft_fiber_is_done(const weft_fiber *f);

/*
 * Where a garbage collector looks for pointers: the stack of f, [*out_low, *out_high), and how far down it is used. NULL: the
 * thread's own stack. Of the one that runs, out_sp is the caller's frame.
 */
WEFT_API void weft_fiber_stack(const weft_fiber *f, void **out_low, void **out_high, void **out_sp);

/*
 * Give the fiber and its stack back. One that is suspended does not run any more: nothing of what it would still have done
 * is done. Any thread may, for one whose thread has ended, too. NULL: nothing. One that runs: abort().
 */
WEFT_API void weft_fiber_free(weft_fiber *f);

WEFT_END

#endif
