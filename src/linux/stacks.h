// SPDX-License-Identifier: Apache-2.0
/* Stacks of threads, side by side; see stacks.c. */
#ifndef WF_LINUX_STACKS_H
#define WF_LINUX_STACKS_H

#include "base/base.h"

/* In a fork child. */
void lx_stacks_forget(void);

#endif
