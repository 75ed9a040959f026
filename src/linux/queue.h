// SPDX-License-Identifier: Apache-2.0
/* Message queues and semaphores; see queue.c. */
#ifndef WF_LINUX_QUEUE_H
#define WF_LINUX_QUEUE_H

#include "base/base.h"

/* In a fork child. */
void lx_queue_forget(void);

#endif
