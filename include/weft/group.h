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
 * Start fn(arg) in a thread of the group, when there are fewer than the limit.
 *
 * Where:   the thread that uses the group first opens it, and is to wait for it; others may be in it.
 * Returns: 0. -ECANCELED, -ETIMEDOUT: the group is over, or a scope of the caller's; fn is not called. -ENOMEM, -EAGAIN: no
 *          thread could be made.
 */
WEFT_API int weft_group_go(weft_group *g, weft_fn *fn, void *arg);

/*
 * Wait until all its threads have ended; never less. A scope of the caller's that is over cancels them first. The group is
 * as new afterwards.
 *
 * Where:   the thread that has opened it, in the scope where it did.
 * Returns: 0: with WEFT_ANY, one of them has returned no error; else, none has returned one. The first error of them; of a
 *          scope that has ended the wait, if they had none. pthread_exit() in one of them counts as -ECANCELED.
 */
WEFT_API int weft_group_wait(weft_group *g);

/* All its threads are cancelled, as by weft_scope_cancel(). From any thread, and from signal handlers. */
WEFT_API void weft_group_cancel(weft_group *g);

WEFT_END

#endif
