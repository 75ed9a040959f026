// SPDX-License-Identifier: Apache-2.0
/* The time; see clock.c. */
#ifndef WF_SCHED_CLOCK_H
#define WF_SCHED_CLOCK_H

#include "base/base.h"

struct __kernel_timespec;

/* CLOCK_MONOTONIC in nanoseconds, for any context but a signal handler. The second: NULL, or the vDSO's. */
int64_t wf_now(void);
extern long (*wf_clock_vdso)(int clock, struct __kernel_timespec *out);

#endif
