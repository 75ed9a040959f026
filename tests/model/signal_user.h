// SPDX-License-Identifier: Apache-2.0
/* Between the files of the signal machine: the kernel and the stage (signal_machine.c), gate and program (signal_gate.c). */
#ifndef WF_TESTS_SIGNAL_USER_H
#define WF_TESTS_SIGNAL_USER_H

#include "signal_machine.h"

/* signal_gate.c */
void signal_gate_reset(void);
/* The kernel thread with that index takes kicks. */
void signal_gate_add_kthread(uint32_t index);
/* A thread that runs program(thread): READY, on no queue. */
struct lx_thread *signal_gate_thread(void (*program)(void *), uint64_t mask);

#endif
