// SPDX-License-Identifier: Apache-2.0
/* From the gate to a handler; see dispatch.c. */
#ifndef WF_LINUX_DISPATCH_H
#define WF_LINUX_DISPATCH_H

#include "linux/abi.h"

bool lx_wants(int nr);
/* A call that must be seen while there is no thread yet. */
bool lx_wants_at_start(int nr);

/* By gate.S. The call's result; if that is -ERESTARTSYS or the like, wf_linux_interrupted() follows. */
WF_PARKS long wf_linux_enter(struct wf_frame *f);
void wf_linux_interrupted(struct wf_frame *f);
void wf_linux_make(struct wf_frame *f);
void wf_linux_attention(struct wf_frame *f);

#endif
