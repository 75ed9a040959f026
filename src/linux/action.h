// SPDX-License-Identifier: Apache-2.0
/* The program's actions, as far as the kernel has them. */
#ifndef WF_LINUX_ACTION_H
#define WF_LINUX_ACTION_H

#include "linux/abi.h"

/* Under lx.action_lock: the handler of sig is gone, SA_RESETHAND. */
void lx_action_reset(int sig);
/* The kernel keeps the program's own disposition, except where a signal must reach us. */
void lx_action_tell_kernel(int sig);
/* Those, too: nothing reaches us any more. */
void lx_action_give_back(void);
/* In a process that weft leaves alone from now on: the same, and t's alternate stack. */
void lx_signal_restore_kernel(struct lx_thread *t);

#endif
