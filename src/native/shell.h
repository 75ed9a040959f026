// SPDX-License-Identifier: Apache-2.0
/*
 * Shells: pthreads of weft_thread_spawn() that rest when their function has returned, and have another one later. To make a
 * pthread costs ten times as much. The runtime's code; what libc keeps of a thread is seen to in fresh.c.
 *
 * Invariant: whoever gives a shell an order, or wakes its joiner, does both under the shell's lock, and the one that was woken
 * takes the lock before it goes on. So no wake-up reaches a later wait.
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

/* Of the shell itself. False: its function has left something that the next one would find; or enough of them rest. */
bool wf_shell_may_rest(struct wf_thread *self, struct weft_thread *t);
/* True: it is a new thread. False: it is to end. */
WF_PARKS bool wf_shell_rest(struct wf_thread *self, struct weft_thread *t);

/* The function has returned. True: somebody sleeps on the state, and is to be woken. */
bool wf_shell_publish(struct wf_thread *self, struct weft_thread *t, enum wf_thread_use state);
/*
 * Until that. 0; -ETIMEDOUT, -ECANCELED, of a scope, too; -EINTR: a signal. self: NULL, and it says that the state is to be slept on.
 */
WF_PARKS int wf_shell_await(struct wf_thread *self, struct weft_thread *t, int64_t until);

/* In a fork child: there are none. */
void wf_shell_forget(void);

#endif
