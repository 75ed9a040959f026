// SPDX-License-Identifier: Apache-2.0
/*
 * Clocks of threads: CLOCK_THREAD_CPUTIME_ID, those of pthread_getcpuclockid(), and what waits for them.
 */
#ifndef WF_LINUX_CPUCLOCK_H
#define WF_LINUX_CPUCLOCK_H

#include "linux/abi.h"

enum lx_clock_kind {
	LX_CLOCK_KERNEL, /* no clock of a thread of ours, or none at all: ask the kernel */
	LX_CLOCK_THREAD,
	LX_CLOCK_DEAD, /* of a thread that has ended */
};

/* The owner of a clock. *out_thread is set for LX_CLOCK_THREAD. */
enum lx_clock_kind lx_cpuclock_thread(int clock, struct lx_thread **out_thread);

/* Sleep until the CPU clock of t shows at; *remaining of a relative sleep is written when a signal ends it. */
WF_PARKS long lx_cpuclock_sleep(struct lx_thread *t, int64_t at, void *remaining);

#endif
