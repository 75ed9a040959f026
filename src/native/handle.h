// SPDX-License-Identifier: Apache-2.0
/*
 * The memory of handles: type-stable, a few of them kept by each worker.
 *
 * Called by: thread.c, shell.c. Invariant: what a worker keeps is touched by the runtime's code of a thread on that worker alone,
 * which nothing preempts: there is nothing to lock.
 */
#ifndef WF_NATIVE_HANDLE_H
#define WF_NATIVE_HANDLE_H

#include "native/thread.h"

/* All of a use is clear but state and uses; NULL: no memory. self: NULL is none of weft's. */
struct weft_thread *wf_handle_get(const struct wf_thread *self);
/* It is FREE from now on. */
void wf_handle_put(const struct wf_thread *self, struct weft_thread *t);
/* The same, for the program's code. */
void wf_handle_put_by(const struct wf_thread *self, struct weft_thread *t);

WF_INLINE weft_thread *wf_handle_of(struct weft_thread *t)
{
	return (weft_thread *)((uintptr_t)t | t->uses % WF_USES);
}

/* NULL: the handle is none, or is gone. */
WF_INLINE struct weft_thread *wf_handle_look_up(weft_thread *handle)
{
	struct weft_thread *t = (struct weft_thread *)((uintptr_t)handle & -(uintptr_t)WF_USES);

	if (!t || wf_load_acquire(&t->state) == WF_USE_FREE || wf_handle_of(t) != handle)
		return NULL;
	return t;
}

/* In a fork child: there are none. */
void wf_handle_forget(void);

#endif
