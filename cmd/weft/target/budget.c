// SPDX-License-Identifier: Apache-2.0
/* Counting what a dump costs; see budget.h. */
#include "target/budget.h"

#include <time.h>

#define LOOKS_AT_CLOCK 256 /* so many reads take less than a millisecond */

static int64_t now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

void wf_budget_begin(struct wf_budget *b)
{
	*b = (struct wf_budget){ .reads = WF_BUDGET_READS, .bytes = WF_BUDGET_BYTES };
	wf_budget_set_time(b, WF_BUDGET_PHASE_S);
}

void wf_budget_set_time(struct wf_budget *b, int seconds)
{
	b->until_us = now_us() + (int64_t)seconds * 1000000;
	b->spent = NULL;
}

bool wf_budget_take(struct wf_budget *b, size_t bytes)
{
	if (b->spent)
		return false;
	if (!b->reads)
		b->spent = "reads";
	else if (bytes > b->bytes)
		b->spent = "bytes";
	else if (b->reads % LOOKS_AT_CLOCK == 0 && now_us() > b->until_us)
		b->spent = "time";
	if (b->spent) {
		b->was_spent = b->spent;
		return false;
	}
	b->reads--;
	b->bytes -= bytes;
	return true;
}
