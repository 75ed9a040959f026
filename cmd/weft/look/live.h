// SPDX-License-Identifier: Apache-2.0
/*
 * `weft top` on a terminal: one page that is looked at again and again, and keys.
 *
 * Files: live.c (the loop and its keys), tables.c (the columns of
 * each view), rows.c (filter and order), page.c (from rows to lines), pages.c (text of
 * others: help, a stack), term.c and line.c (the terminal).
 *
 * Invariant: nobody is stopped, unless the key for a stack or a dump asks for it; and that does a process of its own.
 */
#ifndef WF_LOOK_LIVE_H
#define WF_LOOK_LIVE_H

#include "look/rates.h"
#include "look/term.h"
#include "target/wait.h"

enum wf_live_view {
	WF_LIVE_THREADS,
	WF_LIVE_GROUPS,
	WF_LIVE_LOCKS,
	WF_LIVE_WORKERS,
	WF_LIVE_PROCESSES,
	WF_LIVE_NR_VIEWS,
};

/* A process of the list of all. */
struct wf_live_process {
	struct wf_look look;
	struct wf_rates_look looks[2];
	struct wf_rates rates;
	int now; /* of looks; -1: there is none yet */
	bool is_open, is_listed;
};

/* Threads that wait in the same way. */
struct wf_live_group {
	const struct wf_dump_thread *oldest;
	const struct wf_dump_thread *owner; /* NULL: none, or not known */
	size_t nr;
	unsigned state, kind;
	uint64_t what;
};

struct wf_live {
	struct wf_term term;
	enum wf_live_view view;
	double interval_s;
	bool is_paused, is_over; /* over: the process has ended */
	int pid;                 /* 0: none is chosen */
	/* of one process */
	struct wf_look look;
	struct wf_rates_look looks[2];
	int now; /* of looks; -1: there is none yet */
	struct wf_rates rates;
	struct wf_shares shares; /* of the threads of that look */
	struct wf_waits *waits;
	char program[256];
	char *summary; /* lines */
	struct wf_live_group *groups;
	size_t nr_groups;
	/* of all */
	struct wf_live_process *processes;
	size_t nr_processes;
	/* the table */
	size_t *rows; /* of what is shown, in its order: places in the data of the view */
	size_t nr_rows, cursor, first;
	size_t shift; /* so many columns behind the first one are left out */
	size_t sort[WF_LIVE_NR_VIEWS];
	bool is_reverse[WF_LIVE_NR_VIEWS];
	char filter[64];
	bool is_typing; /* the filter */
	char message[256];
	bool is_alarm;
};

/* pid 0: all. Returns the exit status. */
int wf_live_run(int pid, double interval_s, enum wf_rates_sort sort);

#endif
