// SPDX-License-Identifier: Apache-2.0
/*
 * The time, and spans of it in words.
 *
 * Called by: all of this folder. Invariant: it calls nothing of it.
 */
#include "watch/watch.h"

#include <stdio.h>
#include <time.h>

int64_t wf_watch_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * WF_WATCH_S + ts.tv_nsec;
}

const char *wf_watch_span(char out[32], int64_t ns)
{
	double s = (double)ns / 1e9;

	if (s < 0.1)
		snprintf(out, 32, "%.0f ms", s * 1e3);
	else if (s < 120)
		snprintf(out, 32, "%.*f s", s < 10, s);
	else if (s < 7200)
		snprintf(out, 32, "%.0f min", s / 60);
	else if (s < 172800)
		snprintf(out, 32, "%.0f h", s / 3600);
	else
		snprintf(out, 32, "%.0f days", s / 86400);
	return out;
}
