// SPDX-License-Identifier: Apache-2.0
/*
 * `weft trace --on`: waiting for something to happen, and keeping what led to it.
 *
 * Used by: trace.c, which parses; run.c.
 */
#ifndef WF_TRACE_WHEN_H
#define WF_TRACE_WHEN_H

#include "trace/trace.h"

#define WF_WHEN_FORMS "call>TIME, ready>TIME, stall, stall>TIME or deadlock"

/* One more condition. False: that is none, or there are too many. */
bool wf_when_add(struct wf_trace_options *o, const char *text);

/* Looks until the time is over, the process is gone, or the user has enough. The exit code. */
int wf_when_run(const struct wf_trace_options *o);

#endif
