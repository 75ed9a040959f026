// SPDX-License-Identifier: Apache-2.0
/* A system call made by another kernel thread of ours. */
#ifndef WF_LINUX_REMOTE_H
#define WF_LINUX_REMOTE_H

#include "linux/abi.h"

/* The kernel thread of ours that the kernel calls tid, or NULL. */
struct wf_kthread *lx_remote_find(int tid);
/* Let k make a call that does not block. Returns what the call returned, or -ESRCH if k has ended. */
long lx_remote_call(struct wf_kthread *k, long nr, const long args[6]);
/* For k itself, when it was kicked: make the call that it was asked for. */
void lx_remote_answer(struct wf_kthread *k);

#endif
