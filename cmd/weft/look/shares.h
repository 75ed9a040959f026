// SPDX-License-Identifier: Apache-2.0
/*
 * The parts of the time that each thread runs, is ready, and waits: by looking at its state often.
 *
 * Used by: top.c, live.c, openmetrics.c. The program counts nothing for it, so it has a price only for the one who looks:
 * WF_SHARES_COST of the time at most, with fewer looks where there are many threads.
 *
 * Invariants: a row belongs to a thread by its place and its tid, and the rows are in the order of the last whole look. That
 * a thread has been ready since a moment is said only if it was ready at every look from then on and has not run between.
 */
#ifndef WF_LOOK_SHARES_H
#define WF_LOOK_SHARES_H

#include "look/look.h"

#define WF_SHARES_EVERY_S 0.05
#define WF_SHARES_COST 0.01

struct wf_share {
	uint64_t address, nr_switches;
	int64_t tid, read_at;
	int64_t ready_since;    /* CLOCK_MONOTONIC; 0: it is not ready */
	float run, ready, wait; /* looks, the old ones for less and less */
};

struct wf_shares {
	struct wf_share *rows;
	size_t nr;
	int64_t oldest_ready_ns; /* at the last look: how long, at least, somebody has been ready */
	int64_t oldest_ready_tid; /* 0: nobody is */
	double every_s;           /* so often a look is worth its price */
};

/*
 * A whole look, which took cost_s: the rows become those of t. Without memory there are none. Release with
 * wf_shares_done(); all zeroes are valid.
 */
void wf_shares_look(struct wf_shares *s, const struct wf_layout *l, const struct wf_threads *t,
		    double cost_s);
/* One more look at the same threads. */
void wf_shares_sample(struct wf_shares *s, struct wf_look *l);
/* Looks until the time is over. */
void wf_shares_pause(struct wf_shares *s, struct wf_look *l, double seconds);
void wf_shares_done(struct wf_shares *s);

/* Of 100, which a row with no look at all has none of. */
double wf_shares_percent(const struct wf_share *s, float part);

#endif
