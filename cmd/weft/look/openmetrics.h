// SPDX-License-Identifier: Apache-2.0
/*
 * One look at a process as OpenMetrics 1.0 text.
 *
 * Used by: metrics.c. Invariant: the same series every time, whatever the process does, and none per thread.
 */
#ifndef WF_LOOK_OPENMETRICS_H
#define WF_LOOK_OPENMETRICS_H

#include <stdio.h>

#include "look/look.h"

/* False and l->target.error: see wf_look_at(). Nothing is written then. */
bool wf_openmetrics_write(struct wf_look *l, FILE *out);

#endif
