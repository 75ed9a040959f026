/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groups: threads that are started together, waited for together, and cancelled together. See weft_group(3).
 *
 *	weft_group g = { .name = "fastest", .policy = WEFT_ANY, .deadline = weft_now() + 300 * WEFT_MS };
 *	for (int i = 0; i < n && weft_group_go(&g, fetch, &mirrors[i]) == 0; i++)
 *		;
 *	return weft_group_wait(&g);
 *
 * A group is a scope for its threads, and lies in those that its opener had open at the first weft_group_go(). Nothing is
 * kept of a thread that has ended, so a loop that accepts connections can use one group for ever. A thread may start others
 * in the group that it is in.
 */
#ifndef WEFT_GROUP_H
#define WEFT_GROUP_H

#include <weft/thread.h>

WEFT_BEGIN

enum weft_group_policy {
	WEFT_ALL,  /* the first thread that returns an error cancels the others */
	WEFT_ANY,  /* the first that returns none does */
	WEFT_EACH, /* neither */
};

/* Valid when zeroed. The named members are read by each weft_group_go(). */
typedef struct weft_group {
	const char *name;
	weft_time deadline;                  /* 0: none; read by the first weft_group_go() */
	unsigned limit;                      /* so many threads at most at a time; 0: any number */
	unsigned policy;                     /* enum weft_group_policy */
	const struct weft_thread_opts *opts; /* of its threads, or NULL */
	uint64_t opaque[8];
} weft_group;

/*
 * Start fn(arg) in a thread of g, when there are fewer than its limit.
 *
 * Where:   the thread that uses g first opens it, and is to wait for it; the threads in it, too; not in a signal
 *          handler. Parks while the limit is reached.
 * Order:   what was done before it is seen by fn.
 * Returns: 0; -ECANCELED, -ETIMEDOUT: the group is over, or a scope of the caller's, and fn is not called; -ENOMEM,
 *          and the errors of weft_thread_spawn(): no thread could be made.
 * Owns:    g, its name and opts are borrowed until weft_group_wait(). arg is passed on as it is; on an error it
 *          stays the caller's.
 * Cancel:  ends with its scopes and with g; is no cancellation point of pthread_cancel().
 * After:   Group.Go and SetLimit of Go's errgroup.
 */
WEFT_API int weft_group_go(weft_group *g, weft_fn *fn, void *arg);

/*
 * Wait until all threads of g have ended; never less. A scope of the caller's that is over cancels them first. g is
 * as new afterwards.
 *
 * Where:   the thread that has opened it, in the scope where it did, not in a signal handler. Parks.
 * Order:   what they have done is seen afterwards.
 * Returns: 0: with WEFT_ANY, one of them has returned no error; else, none has returned one. The first error of
 *          them; if they had none, -ETIMEDOUT or -ECANCELED of a scope that has ended the wait. pthread_exit() in
 *          one of them counts as -ECANCELED.
 * Owns:    g is the caller's again.
 * Cancel:  its scopes cancel the threads, and it waits on; is no cancellation point of pthread_cancel().
 * After:   Group.Wait of Go's errgroup; WEFT_ANY: the joiner of first success of Java's StructuredTaskScope.
 */
WEFT_API int weft_group_wait(weft_group *g);

/*
 * All threads of g are cancelled, as by weft_scope_cancel(). One that is not open starts none when it is.
 *
 * Where:   any thread, also in signal handlers. Never waits.
 * Order:   as weft_scope_cancel().
 * Returns: nothing; cannot fail.
 * Owns:    g stays its opener's.
 * Cancel:  no.
 * After:   the cancel of errgroup.WithContext of Go.
 */
WEFT_API void weft_group_cancel(weft_group *g);

WEFT_END

#endif
