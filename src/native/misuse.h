// SPDX-License-Identifier: Apache-2.0
/*
 * A mistake of the caller: one line on standard error, a picture of what surrounds it (picture.h), then abort(). Each message
 * stands in docs/operations.md.
 */
#ifndef WF_NATIVE_MISUSE_H
#define WF_NATIVE_MISUSE_H

#include "native/face.h"

struct wf_chan;
struct wf_scopes;

/* The calling thread's, which may be not ready for use; native/scope.c stores it before the program begins. */
extern struct wf_scopes *(*wf_misuse_scopes)(void);

/* "weft: " and a newline are added. */
WF_NORETURN WF_PRINTF(1, 2) WF_FACE_CODE void wf_misuse(const char *format, ...);
/* The same, about a channel. */
WF_NORETURN WF_PRINTF(2, 3) WF_FACE_CODE
	void wf_misuse_of(struct wf_chan *ch, const char *format, ...);

#endif
