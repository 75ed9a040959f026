// SPDX-License-Identifier: Apache-2.0
/* The number that the kernel is told when a program names a thread of ours. */
#ifndef WF_LINUX_NAMED_H
#define WF_LINUX_NAMED_H

#include "linux/abi.h"

/*
 * The tid of t's own kernel thread if it is bound; else of one that all other threads share, which is not the first of
 * the process.
 */
int lx_named_kernel_tid(const struct lx_thread *t);

#endif
