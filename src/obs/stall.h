// SPDX-License-Identifier: Apache-2.0
/*
 * The watchdog's message.
 *
 * Called by: linux/watchdog.c, through a hook, by the door, at most once a minute.
 */
#ifndef WF_OBS_STALL_H
#define WF_OBS_STALL_H

#include "linux/watchdog.h"

/* One line on standard error, in one write. */
void wf_stall_report(const struct lx_stall *s);

#endif
