// SPDX-License-Identifier: Apache-2.0
/*
 * The end of a thread of libweft's, and the one that waits for it. The runtime's code.
 *
 * Called by: thread.c, shell.c. Invariant: a joiner's wake-up comes under the thread's lock, which a joiner that something else has
 * woken takes before it goes on. So none reaches a later wait.
 */
#ifndef WF_NATIVE_JOINER_H
#define WF_NATIVE_JOINER_H

#include "native/thread.h"

/*
 * The caller's function has returned: no canceller finds its root any more, and the joiner is told. True: a kernel thread that is not
 * weft's sleeps on the state, and is to be woken.
 */
bool wf_joiner_tell(struct weft_thread *t);
/* The same, where that was seen to: root is NULL, and no canceller was at it behind a fence. Does not yield. */
bool wf_joiner_tell_closed(struct weft_thread *t);
/* The caller's root is closed, and its pthread ends: the joiner is told when the stack is libc's again. */
void wf_joiner_tell_when_gone(struct wf_thread *self, struct weft_thread *t);

struct wf_joiner {
	pthread_t joiner;
	bool is_claimed; /* t->is_joined is its */
};
/*
 * Until that. 0; -ETIMEDOUT, -ECANCELED, of a scope, too; -EINTR: a signal. self: NULL, and it says that the state is to be slept on.
 * Unless t has ended before, join is the one that joins it from then on; -EBUSY: there is another one.
 */
WF_PARKS int wf_joiner_await(struct wf_thread *self, struct weft_thread *t, struct wf_joiner *join,
			     int64_t until);

#endif
