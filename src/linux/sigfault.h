// SPDX-License-Identifier: Apache-2.0
/* Faults; see sigfault.c. */
#ifndef WF_LINUX_SIGFAULT_H
#define WF_LINUX_SIGFAULT_H

#include "linux/abi.h"

void lx_signal_on_fault(int sig, void *siginfo, void *context);
/* By the door: info as it was before lx_signal_on_fault() found that it was no fault and passed it here. */
void lx_signal_unforward(struct wf_siginfo *info);

#endif
