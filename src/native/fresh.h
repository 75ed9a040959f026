// SPDX-License-Identifier: Apache-2.0
/*
 * The state that libc and the program's modules keep of a thread, for a shell whose next function is to find a new one.
 *
 * Called by: thread.c, in the program's code. Invariant: what is not known for certain makes a thread end for real, so that libc
 * does what there is to be done: destructors, key values, a resolver's state.
 */
#ifndef WF_NATIVE_FRESH_H
#define WF_NATIVE_FRESH_H

#include "native/face.h"

/* Once, before the first thread that may become a shell: learns where libc keeps what. */
WF_FACE_CODE void wf_fresh_learn(void);

/* Of the caller: nothing is left, and thread-local variables are as the modules' images have them. Else nothing has changed. */
WF_FACE_CODE bool wf_fresh_reset(void);

#endif
