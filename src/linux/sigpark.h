// SPDX-License-Identifier: Apache-2.0
/* Signals that lie in the kernel; see sigpark.c. */
#ifndef WF_LINUX_SIGPARK_H
#define WF_LINUX_SIGPARK_H

#include "linux/abi.h"

/* By the door: put sig there; do what others asked for. */
void lx_signal_park(int sig);
/* One that the door has just taken, and nobody wants. */
void lx_signal_park_taken(int sig);
void lx_signal_park_asked(void);
/* Signals of set that lie in the kernel because nobody wanted them: let the door fetch them now. */
void lx_signal_unpark(uint64_t set);
/* The same; returns when what was pending of set is to be had. */
void lx_signal_unpark_and_wait(uint64_t set);
/* The kernel is about to be asked for sig: it keeps it from the beginning if nobody wants it. */
void lx_signal_expect(int sig);
/* Everything that is pending for the process goes into the kernel, for exec; and back. */
void lx_signal_leave(void);
void lx_signal_stay(void);

#endif
