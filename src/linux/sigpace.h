// SPDX-License-Identifier: Apache-2.0
/* A pause between the signals of a fast timer; see sigpace.c. */
#ifndef WF_LINUX_SIGPACE_H
#define WF_LINUX_SIGPACE_H

#include "linux/abi.h"

/* By t, where a timer's handler returns. True: only timer signals are pending, so t runs for a moment before the next. */
bool lx_signal_pace(struct lx_thread *t);
/* By the door: tells those whose moment is over; or when that is, WF_NEVER for nobody. */
int64_t lx_signal_paced_until(int64_t now);

#endif
