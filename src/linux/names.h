// SPDX-License-Identifier: Apache-2.0
/*
 * Names of other threads: libc reads and writes /proc/self/task/TID/comm, which the kernel has for none of ours.
 */
#ifndef WF_LINUX_NAMES_H
#define WF_LINUX_NAMES_H

#include "linux/abi.h"

WF_PARKS long sysc_open(struct wf_frame *f);
WF_PARKS long sysc_open_rare(struct wf_frame *f);
WF_PARKS long sysc_close_name(struct wf_frame *f);

#endif
