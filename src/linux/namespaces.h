// SPDX-License-Identifier: Apache-2.0
/* Namespaces that a thread, or the program, enters; see namespaces.c. */
#ifndef WF_LINUX_NAMESPACES_H
#define WF_LINUX_NAMESPACES_H

#include "linux/abi.h"

WF_PARKS long sysc_unshare(struct wf_frame *f);
WF_PARKS long sysc_setns(struct wf_frame *f);

#endif
