// SPDX-License-Identifier: Apache-2.0
/* How long the calling kernel thread keeps a processor while others of the kernel's wait; see slice.c. */
#ifndef WF_SYS_SLICE_H
#define WF_SYS_SLICE_H

#include "base/base.h"

/* For one that has something to do now and then, and is to do it at once. */
#define SYS_SLICE_SHORT_NS (100 * WF_US)

/* 0: as the kernel likes. What it was before; threads that this one makes inherit it. */
int64_t sys_slice_ask(int64_t ns);

#endif
