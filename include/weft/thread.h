/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads: functions that run beside one another. See weft_thread(3).
 *
 *	static int fetch(void *arg) { ... }
 *
 *	weft_thread *t;
 *	int result, error = weft_thread_spawn(fetch, url, NULL, &t);
 *	if (!error)
 *		error = weft_thread_join(t, &result, WEFT_NEVER);
 *
 * A thread is a pthread: it has errno, thread_local variables, a name and signals of its own, may block, and is preempted.
 * A group (weft/group.h) starts many and waits for all of them. A handle ends with the join, or with fork(), in the child.
 */
#ifndef WEFT_THREAD_H
#define WEFT_THREAD_H

#include <pthread.h>
#include <weft/base.h>

WEFT_BEGIN

typedef struct weft_thread weft_thread;

/* Returns >= 0, or -Exxx. */
typedef int weft_fn(void *arg);

/* The thread may find what the last user of its pthread has left in thread_local variables, as in a thread pool. */
#define WEFT_THREAD_POOLED 1u
/* It has a kernel thread for itself, for libraries that look at which one they are called on. */
#define WEFT_THREAD_BOUND 2u

struct weft_thread_opts {
	size_t size; /* of this structure */
	const char
		*name; /* the first 15 bytes are shown; NULL: that of the thread that spawns it */
	size_t stack_bytes; /* 0, or too small for thread-local variables: as pthread_create() */
	int nice;           /* 0: that of the thread that spawns it */
	unsigned flags;     /* WEFT_THREAD_* */
};

/*
 * Run fn(arg) in a new thread. opts: NULL, or what it is to have. out: where to put the handle, to be joined; NULL:
 * nobody joins it, and it is gone when fn returns. It begins in its turn, when those that were spawned before it have
 * begun, whatever they wait for; where there is no room for its pthread then, as soon as there is, and until then others
 * are refused. Threads that wait only for those that they have spawned always go on. It begins with the signal mask and
 * the floating-point mode of the thread that spawns it. pthread_exit() in it, and pthread_cancel() of it, make
 * -ECANCELED its result.
 *
 * Where:   any thread, not in a signal handler. Parks only where opts have a nice value or WEFT_THREAD_BOUND, until
 *          it has begun, and where there is no room, until pthreads of other kinds that rest have ended: some milliseconds.
 * Order:   what was done before it is seen by fn.
 * Returns: 0; -EAGAIN: no memory for a stack, or no room for a thread, and it will not begin; -EINVAL: opts, or fn is NULL; -EACCES,
 *          -EPERM: a nice value below the spawning thread's.
 * Owns:    the handle is the caller's until it is joined. opts is borrowed for the call, arg is passed on as it is.
 * Cancel:  no scope ends it.
 * After:   pthread_create().
 */
WEFT_API int weft_thread_spawn(weft_fn *fn, void *arg, const struct weft_thread_opts *opts,
			       weft_thread **out);

/*
 * Wait until t has ended, with all that libc does at the end of a thread. out_result: NULL, or where to put what fn
 * returned. until: when to give up. A handle that is gone, or that another thread is joining, and the thread
 * itself, end the process.
 *
 * Where:   any thread, not in a signal handler. Parks.
 * Order:   what t did is seen afterwards.
 * Returns: 0; -ETIMEDOUT, -ECANCELED: t goes on, and is to be joined later.
 * Owns:    on 0 the handle t is gone.
 * Cancel:  ends with its scopes; is no cancellation point of pthread_cancel().
 * After:   pthread_clockjoin_np().
 */
WEFT_API int weft_thread_join(weft_thread *t, int *out_result, weft_time until);

/*
 * Cancel t, as weft_scope_cancel() a scope around all of its function: from now on its waits fail with ECANCELED,
 * and so do those of groups that it waits for. It ends when its function returns. Threads of a group are cancelled
 * by weft_group_cancel(). A handle that is gone ends the process.
 *
 * Where:   any thread, not in a signal handler. Never waits.
 * Order:   as weft_scope_cancel().
 * Returns: nothing; cannot fail.
 * Owns:    t stays the caller's, to be joined.
 * Cancel:  no.
 * After:   none; it is not pthread_cancel().
 */
WEFT_API void weft_thread_cancel(weft_thread *t);

/*
 * The thread's own handle.
 *
 * Where:   any thread, also in signal handlers. Never waits.
 * Order:   none.
 * Returns: the handle; NULL: weft_thread_spawn() has not made this thread.
 * Owns:    it stays its owner's.
 * Cancel:  no.
 * After:   pthread_self().
 */
WEFT_API weft_thread *weft_thread_self(void);

/*
 * Name the calling thread, whoever made it: the first 15 bytes of name are what ps, gdb and dumps show. NULL:
 * nothing.
 *
 * Where:   any thread, not in a signal handler. Never waits.
 * Order:   none.
 * Returns: nothing; cannot fail.
 * Owns:    name is copied.
 * Cancel:  no.
 * After:   pthread_setname_np().
 */
WEFT_API void weft_thread_set_name(const char *name);

/*
 * The pthread that t is until its function returns, for pthread_kill(), pthread_setaffinity_np() and their like; not to
 * be joined or detached. It may be gone as soon as the function has returned, joined or not. A handle that is gone ends the
 * process.
 *
 * Where:   any thread, not in a signal handler. Parks until t has begun.
 * Order:   none.
 * Returns: it; cannot fail.
 * Owns:    t stays the caller's.
 * Cancel:  no.
 * After:   native_handle() of std::thread.
 */
WEFT_API pthread_t weft_thread_pthread(weft_thread *t);

/*
 * Let others run first.
 *
 * Where:   any thread, not in a signal handler. Never waits: it runs again when its turn comes.
 * Order:   none.
 * Returns: nothing; cannot fail.
 * Owns:    nothing.
 * Cancel:  no.
 * After:   sched_yield().
 */
WEFT_API void weft_thread_yield(void);

WEFT_END

#endif
