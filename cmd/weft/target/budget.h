// SPDX-License-Identifier: Apache-2.0
/*
 * The bounds of one dump: reads, bytes and time. The target may belong to somebody who wants more.
 *
 * Used by: dump/dump.c, which makes it, and target.c, which every read of the target passes. Invariant: once
 * something is used up, nothing is read any more, and `spent` says what it was.
 */
#ifndef WF_TARGET_BUDGET_H
#define WF_TARGET_BUDGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wf_budget {
	uint64_t reads, bytes; /* left */
	int64_t until_us;      /* CLOCK_MONOTONIC */
	const char *spent;     /* NULL: nothing */
	const char *was_spent; /* the same, of all phases */
};

/* Room for a million threads. */
#define WF_BUDGET_READS (16u << 20)
#define WF_BUDGET_BYTES (4ull << 30)
#define WF_BUDGET_STOPPED_S 10 /* while the target stands still */
#define WF_BUDGET_PHASE_S 30   /* for finding the threads, for walking stacks, for the output */

void wf_budget_begin(struct wf_budget *b);
/* The next phase: so long from now on. */
void wf_budget_set_time(struct wf_budget *b, int seconds);
/* One read of so many bytes: false when there is nothing left for it. */
bool wf_budget_take(struct wf_budget *b, size_t bytes);

#endif
