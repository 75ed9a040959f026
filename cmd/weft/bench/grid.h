// SPDX-License-Identifier: Apache-2.0
/*
 * A grid of measurements: rows of workloads, and for each of them the sides on which it runs (natively, under weft, with libweft). Each
 * cell is a process of its own in each round, and the sides take turns.
 *
 * Used by: threads.c, threading.c, ring.c (which rows, which sides); grid_show.c (table, JSON), grid_svg.c (picture).
 */
#ifndef WF_GRID_H
#define WF_GRID_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define WF_GRID_ROUNDS_MAX 100
#define WF_GRID_SIDES_MAX 3
#define WF_GRID_POINTS_MAX 256

enum wf_grid_metric {
	WF_GRID_MEAN,
	WF_GRID_P50,
	WF_GRID_P99,
	WF_GRID_MAX,
	WF_GRID_CPU, /* seconds of the measured part */
	WF_GRID_NR_METRICS,
};

struct wf_grid_row {
	const char *name;         /* --only, JSON */
	const char *label, *unit; /* table */
	const char *command[8];   /* the program and its arguments; see the side's program */
	bool is_long;             /* in the last round only */
	bool is_timed_outside;    /* the program says nothing: the row is its wall time in ms */
};

struct wf_grid_side {
	const char *name;       /* JSON */
	const char *label;      /* table */
	const char *colour;     /* picture; see svg.h */
	const char *options[4]; /* of weft run; the first is NULL: natively */
	const char *program;    /* instead of the row's, linked with libweft; NULL: the row's */
};

struct wf_grid_cell {
	double samples[WF_GRID_NR_METRICS][WF_GRID_ROUNDS_MAX];
	int nr_samples;
	char why_not[200]; /* "" as long as it can be measured */
	bool is_failure;   /* not only something that this system does not allow */
	/* the distribution of the last round, if the workload has one */
	int nr_points;
	double ns[WF_GRID_POINTS_MAX], share[WF_GRID_POINTS_MAX];
};

struct wf_grid {
	const char *benchmark; /* JSON */
	const char *title;
	const struct wf_grid_row *rows;
	int nr_rows;
	const struct wf_grid_side *sides;
	int nr_sides;
	int nr_rounds;
	bool is_asked[64]; /* rows; none: all */
	bool is_json;
	const char *svg;
	/* results */
	char machine[200], date[16];
	char library_dir
		[PATH_MAX]; /* libweft's, for the programs that are linked with it; "": not known */
	struct wf_grid_cell *cells; /* by row, then by side */
};

/* Run all rows in turn. False after having said why it cannot begin. */
bool wf_grid_measure(struct wf_grid *g);
void wf_grid_done(struct wf_grid *g);

/* --rounds, --only, --svg, --json, --help. Returns 0, or the exit code; *out_done: the help was shown. */
int wf_grid_parse(struct wf_grid *g, int argc, char **argv, bool *out_done);
/* Measure and show. Returns the exit code. */
int wf_grid_run(struct wf_grid *g);
/* The program of that name beside the command. False after having said that there is none. */
bool wf_grid_find(const char *name, char out[PATH_MAX]);

bool wf_grid_has_row(const struct wf_grid *g, int row);
const struct wf_grid_cell *wf_grid_at(const struct wf_grid *g, int row, int side);
/* The median of the rounds; of WF_GRID_MAX the largest. NAN: not measured. */
double wf_grid_value(const struct wf_grid *g, int row, int side, enum wf_grid_metric metric);

/* grid_show.c, grid_svg.c */
void wf_grid_show(const struct wf_grid *g);
void wf_grid_show_json(const struct wf_grid *g);
void wf_grid_svg(const struct wf_grid *g, FILE *out);

#endif
