// SPDX-License-Identifier: Apache-2.0
/* Calls that another kernel thread of ours makes for the caller. */
#ifndef WF_LINUX_REMOTE_H
#define WF_LINUX_REMOTE_H

#include "linux/abi.h"

enum lx_remote {
	LX_REMOTE_PTRACE,           /* a request to one that it traces: the arguments of ptrace() */
	LX_REMOTE_SET_DEATH_SIGNAL, /* the signal */
	LX_REMOTE_DEATH_SIGNAL,     /* returns it */
};

/* The kernel thread of ours that the kernel calls tid, or NULL. */
struct wf_kthread *lx_remote_find(int tid);
/* Let k do it. Returns what the call returned, or -ESRCH if k has ended. */
long lx_remote_do(struct wf_kthread *k, enum lx_remote what, long a, long b, long c, long d);
/* For k itself, when it was kicked: do what it was asked for. */
void lx_remote_answer(struct wf_kthread *k);

#endif
