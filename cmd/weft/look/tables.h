// SPDX-License-Identifier: Apache-2.0
/*
 * The columns of each view of a page.
 *
 * Used by: live.c, rows.c, page.c. Invariant: no text is found out for rows that are not shown.
 */
#ifndef WF_LOOK_TABLES_H
#define WF_LOOK_TABLES_H

#include "look/live.h"

/* A column of a table. */
struct wf_live_column {
	const char *title;
	int width; /* < 0: to the right; 0: what is left */
	/* The text of a row; and its value, by which rows are sorted, the largest first. Without one, by the text. */
	void (*text)(struct wf_live *l, size_t row, char *out, size_t bytes);
	double (*value)(struct wf_live *l, size_t row);
	unsigned from; /* only on a terminal with so many columns */
};

struct wf_live_table {
	const char *name;
	const struct wf_live_column *columns;
	size_t nr_columns, sort; /* the column it is sorted by at first */
	size_t (*count)(const struct wf_live *l);
	const char *lacks; /* when it has no rows */
};

extern const struct wf_live_table wf_tables[WF_LIVE_NR_VIEWS];
/* After each look. */
void wf_tables_make_groups(struct wf_live *l);

#endif
