// SPDX-License-Identifier: Apache-2.0
/*
 * Shells: pthreads of weft_thread_spawn() that rest when their function has returned, and have another one later. To make a
 * pthread costs ten times as much. The runtime's code; what libc keeps of a thread is seen to in fresh.c.
 *
 * Invariant: a shell is PARKING before anybody can find it, no signal and no scope ends that wait, and only one finds it. So the
 * wake-up that comes with the one order is the one that it goes on by, and none reaches a later wait: there is nothing to lock.
 * A joiner's wake-up comes under the shell's lock, which a joiner that something else has woken takes before it goes on.
 */
#ifndef WF_NATIVE_SHELL_H
#define WF_NATIVE_SHELL_H

#include "native/thread.h"

/* By stack: the default, 64 KiB, 256 KiB; and each for threads that do not care what the one before has left. */
#define WF_SHELL_STACKS 3
#define WF_SHELL_CLASSES (2 * WF_SHELL_STACKS)

/* One that rests, with what it has from self; NULL: there is none, or self hands down more than a shell can have. */
struct weft_thread *wf_shell_take(struct wf_thread *self, int shell_class);
/* It has all of its use. */
void wf_shell_start(struct wf_thread *self, struct weft_thread *t);
/* Nobody knows it any more: it rests, or ends. */
void wf_shell_give(struct wf_thread *self, struct weft_thread *t);

/*
 * Of the shell itself, whose function has returned: its joiner hears of it, or without one it is given back, and it rests.
 */
enum wf_shell_rest {
	WF_REST_REFUSED, /* it has left something that the next one would find, or enough of them rest; nobody has heard of it */
	WF_REST_ENDS,    /* it is to end */
	WF_REST_RUNS,    /* it is a new thread */
};
WF_PARKS enum wf_shell_rest wf_shell_rest(struct wf_thread *self, struct weft_thread *t);

/* The function has returned. True: somebody sleeps on the state, and is to be woken. */
bool wf_shell_publish(struct wf_thread *self, struct weft_thread *t, enum wf_thread_use state);
struct wf_shell_join {
	pthread_t joiner;
	bool is_claimed; /* t->is_joined is its */
};
/*
 * Until that. 0; -ETIMEDOUT, -ECANCELED, of a scope, too; -EINTR: a signal. self: NULL, and it says that the state is to be slept on.
 * Unless t has ended before, join is the one that joins it from then on; -EBUSY: there is another one.
 */
WF_PARKS int wf_shell_await(struct wf_thread *self, struct weft_thread *t,
			    struct wf_shell_join *join, int64_t until);

/* In a fork child: there are none. */
void wf_shell_forget(void);

#endif
