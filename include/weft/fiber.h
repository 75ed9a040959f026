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
	const char *name;   /* in messages and dumps; NULL: its address is shown */
	size_t stack_bytes; /* rounded up to a power of two; 0: WEFT_FIBER_STACK */
};

#define WEFT_FIBER_STACK                                                                           \
	((size_t)256 << 10) /* addresses: memory is used as the fiber comes to it */
#define WEFT_FIBER_MIN_STACK ((size_t)16 << 10)

/*
 * A fiber of this thread that will run fn. The first value that is passed to it is fn's argument, and what fn
 * returns is what the last resume returns. Nothing runs yet. opts: NULL for the usual. Below the stack lies a guard
 * of 16 KiB.
 *
 * Where:   any thread, not in a signal handler. Never waits.
 * Order:   none.
 * Returns: the fiber; NULL: no memory, or no room for another mapping.
 * Owns:    the caller frees it with weft_fiber_free(). opts is borrowed for the call, its name for as long as the
 *          fiber lives.
 * Cancel:  no.
 * After:   Fiber.new of Ruby.
 */
WEFT_API weft_fiber *weft_fiber_new(void *(*fn)(void *first), const struct weft_fiber_opts *opts);

/*
 * Go on in f, which is new or has yielded, until it yields or returns. value: the argument of its fn, or what its
 * yield returns there.
 *
 * Where:   the thread that made f, not in a signal handler. Never waits by itself; what runs in f may.
 * Order:   none: one thread.
 * Returns: what f passes to weft_fiber_yield(), or what its fn returns: then weft_fiber_is_done().
 * Owns:    value is passed on as it is.
 * Cancel:  f has scopes of its own, in force until it yields.
 * After:   Fiber#resume of Ruby.
 */
WEFT_API void *weft_fiber_resume(weft_fiber *f, void *value);

/*
 * Go back to the fiber that has resumed this one, where weft_fiber_resume() returns value.
 *
 * Where:   on a fiber that was resumed, not in a signal handler. Never waits by itself.
 * Order:   none: one thread.
 * Returns: what the next resume passes.
 * Owns:    value is passed on as it is.
 * Cancel:  as weft_fiber_resume().
 * After:   Fiber.yield of Ruby.
 */
WEFT_API void *weft_fiber_yield(void *value);

/*
 * Go on in f, which is new or was left by a transfer, and pass value; NULL: the thread's own stack. This fiber then
 * waits for a transfer to it. When a fiber that nobody resumed returns, the thread goes on on its own stack; has
 * that one resumed a fiber, in that one, and so on.
 *
 * Where:   the thread that made f, not in a signal handler. Never waits by itself.
 * Order:   none: one thread.
 * Returns: what is passed by the transfer to here.
 * Owns:    value is passed on as it is.
 * Cancel:  as weft_fiber_resume().
 * After:   Fiber#transfer of Ruby 3.0.
 */
WEFT_API void *weft_fiber_transfer(weft_fiber *f, void *value);

/*
 * The fiber that runs.
 *
 * Where:   any thread, also in signal handlers. Never waits.
 * Order:   none.
 * Returns: the fiber; NULL: the thread's own stack.
 * Owns:    it stays its owner's.
 * Cancel:  no.
 * After:   Fiber.current of Ruby.
 */
WEFT_API weft_fiber *weft_fiber_self(void);

/*
 * Has the fn of f returned?
 *
 * Where:   the thread that made f, also in signal handlers. Never waits.
 * Order:   none.
 * Returns: true or false.
 * Owns:    f stays the caller's.
 * Cancel:  no.
 * After:   Fiber#alive? of Ruby, the other way round.
 */
WEFT_API bool weft_fiber_is_done(const weft_fiber *f);

/*
 * Where a garbage collector looks for pointers: the stack of f, [*out_low, *out_high), used from *out_sp on. f
 * NULL: the thread's own stack. Of the one that runs, out_sp is the caller's frame.
 *
 * Where:   the thread that made f, not in a signal handler. Never waits.
 * Order:   none.
 * Returns: nothing; *out_low and *out_high are both NULL where libc does not know the thread's own stack.
 * Owns:    f stays the caller's.
 * Cancel:  no.
 * After:   none.
 */
WEFT_API void weft_fiber_stack(const weft_fiber *f, void **out_low, void **out_high, void **out_sp);

/*
 * Give f and its stack back. One that is suspended does not run any more: nothing of what it would still have done
 * is done. NULL: nothing. One that runs, or that another waits for, ends the process.
 *
 * Where:   any thread, not in a signal handler. Of a fiber whose thread has ended, too. Never waits.
 * Order:   after all that its thread does with f.
 * Returns: nothing; cannot fail.
 * Owns:    f is gone.
 * Cancel:  no.
 * After:   none.
 */
WEFT_API void weft_fiber_free(weft_fiber *f);

WEFT_END

#endif
