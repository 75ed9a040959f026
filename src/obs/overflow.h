// SPDX-License-Identifier: Apache-2.0
/*
 * The report of a stack overflow.
 *
 * Called by: linux/sigfault.c, through a hook, at most once in the life of a process.
 */
#ifndef WF_OBS_OVERFLOW_H
#define WF_OBS_OVERFLOW_H

#include "linux/overflow.h"

/* On standard error, in one write. */
void wf_overflow_report(const struct lx_overflow *o);

#endif
