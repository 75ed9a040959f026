// SPDX-License-Identifier: Apache-2.0
/* Default actions of signals; see sigdefault.c. */
#ifndef WF_LINUX_SIGDEFAULT_H
#define WF_LINUX_SIGDEFAULT_H

#include "linux/abi.h"

/* Stops the process, or ends it and does not return. */
void lx_signal_default_action(int sig, struct wf_siginfo *info);

#endif
