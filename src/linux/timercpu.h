// SPDX-License-Identifier: Apache-2.0
/*
 * Timers on the CPU clock of a thread. Numbers are the kernel's, as for all timers.
 */
#ifndef WF_LINUX_TIMERCPU_H
#define WF_LINUX_TIMERCPU_H

#include "linux/abi.h"

#define LX_SI_TIMER -2

struct lx_timerspec {
	struct __kernel_timespec interval, value;
};

struct lx_sigevent {
	uint64_t value;
	int signo, notify, tid, pad[11];
};

/* tid: of the thread that it signals, 0: the process. */
long lx_timer_cpu_create(struct lx_thread *clock, const struct lx_sigevent *ev, bool value_is_id,
			 uint32_t tid, int *out_id);
bool lx_timer_cpu_owns(int id);
long lx_timer_cpu_gettime(int id, struct lx_timerspec *out);
long lx_timer_cpu_settime(int id, int flags, const struct lx_timerspec *fresh,
			  struct lx_timerspec *old);
/* For the door: as much wall-clock time has passed as CPU time was left, so the timer may have expired. */
void lx_timer_cpu_expired(int id);

#endif
