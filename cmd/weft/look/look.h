// SPDX-License-Identifier: Apache-2.0
/*
 * A running process under weft, looked at again and again while it goes on, and what the kernel says of it.
 *
 * Used by: ps.c, metrics.c, top.c. Invariant: nobody is stopped or traced; every look has the bounds of budget.h.
 */
#ifndef WF_LOOK_LOOK_H
#define WF_LOOK_LOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "target/threads.h"

struct wf_look {
	unsigned nr_opened; /* more than once: the process has executed another program */
	struct wf_target target;
	struct wf_layout layout;
	struct wf_budget budget;
	unsigned long long
		started; /* in the kernel's ticks since it began: a process ID alone may be another one's */
};

/* Figures from /proc. */
struct wf_look_kernel {
	double age_s, cpu_s;
	double began_s; /* since the epoch */
	unsigned nr_tasks;
	unsigned long long started;
	uid_t owner;
};

/* False: it ended, or may not be looked at. */
bool wf_look_kernel(int pid, struct wf_look_kernel *out);

/* False and l->target.error. Release with wf_look_done() in any case. */
bool wf_look_open(struct wf_look *l, int pid);
void wf_look_done(struct wf_look *l);

/*
 * One look at all (or at a part), with no more than max_threads threads. A process that has executed another program under weft is opened
 * anew. False and l->target.error: it ended, or that program is not under weft.
 */
bool wf_look_at(struct wf_look *l, struct wf_threads *out, struct wf_look_kernel *kernel,
		size_t max_threads, const struct wf_threads_part *part);

/* How many threads wait for one another in circles: those of s that still do so a moment later, and have not run since. */
size_t wf_look_deadlocked(struct wf_look *l, const struct wf_threads *s);

/* Why the threads of the process are the kernel's; out is empty: they are not, or it is not known. */
void wf_look_why_native(const struct wf_look *l, char *out, size_t bytes);

/* CLOCK_MONOTONIC */
double wf_look_now_s(void);

/* "12 s", "3 min", "4.2 h", "5 d" */
const char *wf_look_time(char out[32], double s);

#endif
