// SPDX-License-Identifier: Apache-2.0
/*
 * `weft trace --arm`: a running program begins to record, or stops.
 *
 * Used by: trace.c. Invariant: one word is written into the program, where its own description says that it looks for it,
 * and by the same right by which it is read. The program's answer is its own affair.
 */
#ifndef WF_TRACE_ARM_H
#define WF_TRACE_ARM_H

#include "trace/trace.h"

/* The exit code: 0 when the program has done so, or will as soon as it does something. */
int wf_arm_run(const struct wf_trace_options *o);

#endif
