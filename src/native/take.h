// SPDX-License-Identifier: Apache-2.0
/*
 * How a thread takes back a task that it has forked and that is not the youngest of its deque.
 *
 * Called by: task.c, in the program's code, by the owner of the deque. No libc, so that tests/model can play it.
 *
 * Invariant: the owner gets the very task that it joins, or none; whatever else it has taken on the way is in the deque again, in
 * the same order. While that is set aside thieves do not see it, so the owner asks wf_take_must_call()
 * afterwards, as a fork looks at crew.calls.
 */
#ifndef WF_NATIVE_TAKE_H
#define WF_NATIVE_TAKE_H

#include "native/face.h"
#include "native/taskdeque.h"

/* t was popped just now: where it was there is room. */
WF_FACE_CODE void wf_take_back(struct wf_deque *d, weft_task *t);
/* True: nobody else will call t. False: it was stolen. */
WF_FACE_CODE bool wf_take_task(struct wf_deque *d, weft_task *t);

/* Of the crew: it may have been about to sleep, and not have seen what was set aside. A relaxed load, as in a fork. */
WF_INLINE bool wf_take_must_call(const struct wf_deque *d, const uint32_t *calls)
{
	return WF_UNLIKELY(wf_load_relaxed(calls)) && wf_deque_has_any(d);
}

#endif
