// SPDX-License-Identifier: Apache-2.0
/*
 * One look at a process as OpenMetrics 1.0, or as the older text format of Prometheus (0.0.4).
 *
 * Used by: metrics.c. Invariant: the same series every time, whatever the process does, and none per thread.
 */
#ifndef WF_LOOK_OPENMETRICS_H
#define WF_LOOK_OPENMETRICS_H

#include <stdio.h>

#include "look/shares.h"

enum wf_openmetrics_format {
	WF_OPENMETRICS,
	WF_OPENMETRICS_TEXT, /* which node_exporter and promtool read, and no other */
};

/*
 * shares: the same every time, all zeroes at first. False and l->target.error: see wf_look_at(). Nothing is written then.
 */
bool wf_openmetrics_write(struct wf_look *l, struct wf_shares *shares, FILE *out,
			  enum wf_openmetrics_format format);

#endif
