// SPDX-License-Identifier: Apache-2.0
/* Shared by the functions that wait. */
#ifndef WF_NATIVE_WAIT_H
#define WF_NATIVE_WAIT_H

#include "native/face.h"
#include "native/watched.h"

/*
 * For a kernel thread that is not weft's: how long it may sleep at a time, at most ns. *out_is_over: a scope of its is over, and
 * is to end the wait: then wf_native_end_by_scope() says with which error, or 0 if it does not, after all.
 */
WF_FACE_CODE int64_t wf_native_wait_ns(int64_t ns, bool *out_is_over);
WF_FACE_CODE int wf_native_end_by_scope(void);

/* ret = call, made anew after each signal that was to be handled. call leaves the runtime with self. */
#define WF_NATIVE_WAIT(self, ret, call)                                                            \
	do {                                                                                       \
		(self) = wf_face_enter();                                                          \
		(ret) = (call);                                                                    \
		wf_face_leave(self);                                                               \
	} while (WF_UNLIKELY((ret) == -EINTR))

#endif
