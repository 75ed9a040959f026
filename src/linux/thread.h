// SPDX-License-Identifier: Apache-2.0
/* How a thread comes and goes; see thread.c. */
#ifndef WF_LINUX_THREAD_H
#define WF_LINUX_THREAD_H

#include "linux/abi.h"

/* Hook of the scheduler: the thread has left its stack. */
void lx_thread_exited(struct wf_thread *t);

/* By gate.S: a new thread begins. */
void wf_linux_thread_started(void);

#endif
