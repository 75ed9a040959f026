// SPDX-License-Identifier: Apache-2.0
/*
 * A kernel thread of one's own, for a thread that asks for it.
 */
#ifndef WF_NATIVE_OWN_H
#define WF_NATIVE_OWN_H

#include "native/face.h"

/* 0; -EAGAIN: no kernel thread would be left for the others, and none can be made. self: NULL has one already. */
WF_PARKS int wf_own_bind(struct wf_thread *self);

#endif
