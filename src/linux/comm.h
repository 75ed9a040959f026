// SPDX-License-Identifier: Apache-2.0
/* The kernel's names of our kernel threads. */
#ifndef WF_LINUX_COMM_H
#define WF_LINUX_COMM_H

#include "linux/abi.h"

/* The name of the main thread, or of a bound one, where ps(1) sees it. */
void lx_comm_tell_kernel(const struct lx_thread *t);
/*
 * By the kernel thread that runs t: is called as t is, because it will be t's own, or because it is about to be killed and
 * the kernel's log and a core shall say who it was. Not of a thread that has a filter.
 */
void lx_comm_lend(const struct lx_thread *t);

#endif
