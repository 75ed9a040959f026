// SPDX-License-Identifier: Apache-2.0
/* The door: the main kernel thread; see door.c. */
#ifndef WF_LINUX_DOOR_H
#define WF_LINUX_DOOR_H

#include "linux/abi.h"

WF_NORETURN void lx_door_loop(void *kthread);
/* By the door: take and pass on what is pending now. First what was pending for main before there was a door. */
void lx_door_drain(void);

#endif
