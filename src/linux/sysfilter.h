// SPDX-License-Identifier: Apache-2.0
/*
 * A filter of system calls, and the runtime's own kernel threads.
 */
#ifndef WF_LINUX_SYSFILTER_H
#define WF_LINUX_SYSFILTER_H

#include "base/base.h"

/* They can live under it. user: the program's struct sock_fprog. False also for one that the kernel will refuse. */
bool lx_sysfilter_lets_runtime(const void *user);
/* A line can be written under it. True also for one that cannot be read. */
bool lx_sysfilter_lets_say(const void *user);

#endif
