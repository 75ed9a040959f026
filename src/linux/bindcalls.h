// SPDX-License-Identifier: Apache-2.0
/*
 * Calls whose effect stays with the kernel thread.
 */
#ifndef WF_LINUX_BINDCALLS_H
#define WF_LINUX_BINDCALLS_H

#include "linux/abi.h"

/* The handler that answers call nr for a bound thread; `usual` is that of all others. */
long (*lx_bind_handler(long nr, long (*usual)(struct wf_frame *)))(struct wf_frame *);
/* A call whose effect stays with the kernel thread. */
WF_PARKS long lx_bind_call(struct wf_frame *f);
/* The same for what everybody can make alike: by a caller that is alone it is for all kernel threads. */
WF_PARKS long lx_bind_call_unless_alone(struct wf_frame *f);

#endif
