// SPDX-License-Identifier: Apache-2.0
/* Joins by libc, of each of which a scope ends one, with ETIMEDOUT whatever it was. Called by: thread.c, fresh.c. */
#ifndef WF_NATIVE_JOIN_H
#define WF_NATIVE_JOIN_H

#include "native/face.h"

#include <pthread.h>

/* As weft_thread_join(): 0, -ETIMEDOUT, -ECANCELED, each time while a scope is over. self: the caller, or NULL. */
WF_FACE_CODE int wf_join(const struct wf_thread *self, pthread_t thread, weft_time until);

/* Of a thread that ends soon: whatever the caller's scopes are. */
WF_FACE_CODE void wf_join_surely(pthread_t thread);

#endif
