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

#include <stdio.h>

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

/* What waits in the same way. */
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

/* A column of a table. */
struct wf_live_column {
	const char *title;
	int width; /* < 0: to the right; 0: what is left */
	/* The text of a row; and its value, by which rows are sorted, the largest first. Without one, by the text. */
	void (*text)(struct wf_live *l, size_t row, char *out, size_t bytes);
	double (*value)(struct wf_live *l, size_t row);
};

struct wf_live_table {
	const char *name;
	const struct wf_live_column *columns;
	size_t nr_columns, sort; /* the column it is sorted by at first */
	size_t (*count)(const struct wf_live *l);
	const char *lacks; /* when it has no rows */
};

/* --- tables.c --- */

extern const struct wf_live_table wf_live_tables[WF_LIVE_NR_VIEWS];
/* After each look. */
void wf_live_make_groups(struct wf_live *l);

/* --- rows.c --- */

/* Rows that the filter lets through, sorted. */
void wf_live_make_rows(struct wf_live *l);

/* --- page.c --- */

void wf_live_draw(struct wf_live *l);
/* Rows of the table that there is room for. */
unsigned wf_live_page_rows(const struct wf_live *l);

/* --- pages.c --- */

/* Until a key ends it. False: the terminal is gone. */
bool wf_live_help(struct wf_live *l);
bool wf_live_stack(struct wf_live *l, int64_t tid);
/* Writes a file beside us; says so in l->message. */
void wf_live_dump(struct wf_live *l);

/* --- live.c --- */

void __attribute__((format(printf, 3, 4)))
wf_live_say(struct wf_live *l, bool is_alarm, const char *format, ...);
/* pid 0: all. Returns the exit status. */
int wf_live_run(int pid, double interval_s, enum wf_rates_sort sort);

#endif
