// SPDX-License-Identifier: Apache-2.0
/* The turn of a thread; see turn.c. */
#ifndef WF_NATIVE_TURN_H
#define WF_NATIVE_TURN_H

#include "native/face.h"

/* Others run first. self: a thread of weft's. */
WF_PARKS void wf_turn_give(struct wf_thread *self);

#endif
