// SPDX-License-Identifier: Apache-2.0
/* The rows that are shown, in their order; see live.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "look/rows.h"
#include "look/tables.h"

static struct wf_live *sorted; /* qsort() has no argument for it; the command has one thread */

static int by_column(const void *a, const void *b)
{
	const struct wf_live_table *t = &wf_tables[sorted->view];
	const struct wf_live_column *c = &t->columns[sorted->sort[sorted->view]];
	size_t i = *(const size_t *)a, j = *(const size_t *)b;
	int order = 0;

	if (c->value) {
		double x = c->value(sorted, i), y = c->value(sorted, j);

		order = (x < y) - (x > y);
	} else {
		char x[512], y[512];

		c->text(sorted, i, x, sizeof(x));
		c->text(sorted, j, y, sizeof(y));
		order = strcmp(x, y);
	}
	if (sorted->is_reverse[sorted->view])
		order = -order;
	return order ? order : (i > j) - (i < j);
}

/* Of many threads only what costs little to find out is looked through. */
static bool thread_passes(struct wf_live *l, size_t row)
{
	const struct wf_dump_thread *d = &l->looks[l->now].threads.threads[row];
	const struct wf_layout *y = &l->look.layout;
	char tid[32];

	snprintf(tid, sizeof(tid), "%lld", (long long)d->tid);
	return strcasestr(d->name, l->filter) || strcasestr(tid, l->filter) ||
	       strcasestr(wf_layout_name(y, "state", d->state), l->filter) ||
	       (wf_waits_is_waiting(y, d) &&
		strcasestr(wf_layout_name(y, "wait", d->wait_kind), l->filter));
}

static bool passes(struct wf_live *l, size_t row)
{
	const struct wf_live_table *t = &wf_tables[l->view];
	char text[512];

	if (l->view == WF_LIVE_THREADS)
		return thread_passes(l, row);
	for (size_t i = 0; i < t->nr_columns; i++) {
		t->columns[i].text(l, row, text, sizeof(text));
		if (strcasestr(text, l->filter))
			return true;
	}
	return false;
}

void wf_rows_make(struct wf_live *l)
{
	size_t nr = wf_tables[l->view].count(l);

	free(l->rows);
	l->rows = calloc(nr + 1, sizeof(*l->rows));
	l->nr_rows = 0;
	for (size_t i = 0; l->rows && i < nr; i++) {
		if (!l->filter[0] || passes(l, i))
			l->rows[l->nr_rows++] = i;
	}
	sorted = l;
	if (l->nr_rows)
		qsort(l->rows, l->nr_rows, sizeof(*l->rows), by_column);
}
