// SPDX-License-Identifier: Apache-2.0
/*
 * Two looks at a process, and what happened between them.
 *
 * Used by: top.c, top_show.c. Invariant: a thread is the same one in both looks if its place and its tid are.
 */
#ifndef WF_LOOK_RATES_H
#define WF_LOOK_RATES_H

#include "look/shares.h"

struct wf_rates_look {
	struct wf_threads threads;
	struct wf_look_kernel kernel;
	double at_s;         /* CLOCK_MONOTONIC */
	double cost_s;       /* that it took */
	int64_t *kthread_ns; /* CPU time, as threads.kthreads; -1: unknown */
	unsigned
		nr_parts; /* 1: all was read; 8: an eighth, and the rest is taken over from the look before */
	unsigned part;
	size_t *order;       /* of threads.threads; filled by wf_rates_between() */
	double *cpu_percent; /* of each thread; NAN: unknown */
	double *switches_s;  /* of each thread, a second */
};

struct wf_rates {
	double interval_s, cpu_percent;
	double count_s[WF_NR_COUNTS]; /* a second; see counts.h */
	size_t nr_running, nr_ready, nr_waiting;
	const struct wf_shares *shares; /* by their places in the look; NULL: not counted */
};

enum wf_rates_sort {
	WF_RATES_BY_CPU,
	WF_RATES_BY_SWITCHES,
	WF_RATES_BY_WAIT, /* those that wait longest first */
	WF_RATES_BY_TID,
	WF_RATES_UNSORTED,
};

/*
 * before: the look before this one; of very many threads only a part is looked at then. NULL: of all. False and
 * l->target.error; release in any case.
 */
bool wf_rates_look(struct wf_look *l, struct wf_rates_look *out, size_t max_threads,
		   const struct wf_rates_look *before);
void wf_rates_done(struct wf_rates_look *r);

/* from was before to, which gets its order and its figures. */
void wf_rates_between(const struct wf_look *l, const struct wf_rates_look *from,
		      struct wf_rates_look *to, enum wf_rates_sort sort, struct wf_rates *out);

#endif
