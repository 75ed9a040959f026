// SPDX-License-Identifier: Apache-2.0
/*
 * The maker: a pthread that runs no function of the program's, and finds shells for threads that are stuck. The runtime's code.
 *
 * A thread that is queued behind a shell on its way was promised to the spawner, and there may be no room for its pthread when the time
 * comes. The pthreads that run free theirs only when they are gone, and may all wait for what is stuck: none of them can be relied on.
 * So there is a maker before the first such promise. It is asleep unless something is stuck.
 *
 * Called by: make.c, shell.c. Invariants: the one that takes the maker from where it rests wakes it; see order.h. A thread is stuck
 * before the maker is looked for there, and the maker rests before it looks for stuck ones: one of the two finds the other.
 */
#ifndef WF_NATIVE_MAKER_H
#define WF_NATIVE_MAKER_H

#include "native/thread.h"

/*
 * Of the maker, which blocks all signals but libc's own two: until it is woken or one of those comes, which the caller takes outside,
 * or not at all if it is wanted. False: main has ended, and it does not rest.
 */
WF_PARKS bool wf_maker_rest(struct wf_thread *self, bool (*is_wanted)(void));
void wf_maker_wake(void);

/* In a fork child: there is none. */
void wf_maker_forget(void);

#endif
