// SPDX-License-Identifier: Apache-2.0
/* How many processors there are for us; see cpu.c. */
#ifndef WF_SYS_CPU_H
#define WF_SYS_CPU_H

#include "base/base.h"

/* Processors this process may run on; at least 1. */
uint32_t sys_cpu_allowed(void);
/* The same, and the number that cgroup quotas allow; at least 1. */
int sys_cpu_count(void);

#endif
