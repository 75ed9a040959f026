// SPDX-License-Identifier: Apache-2.0
/*
 * A mistake of the caller: one line on standard error, then abort(). Each message stands in docs/operations.md.
 */
#ifndef WF_NATIVE_MISUSE_H
#define WF_NATIVE_MISUSE_H

#include "native/face.h"

/* "weft: " and a newline are added. */
WF_NORETURN WF_PRINTF(1, 2) WF_FACE_CODE void wf_misuse(const char *format, ...);

#endif
