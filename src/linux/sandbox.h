// SPDX-License-Identifier: Apache-2.0
/*
 * Calls by which a thread, or a program, gives up rights; see sandbox.c.
 */
#ifndef WF_LINUX_SANDBOX_H
#define WF_LINUX_SANDBOX_H

#include "linux/abi.h"

/* prctl() that the kernel keeps for the calling kernel thread, and others. */
WF_PARKS long lx_sandbox_prctl(struct wf_frame *f);

#endif
