// SPDX-License-Identifier: Apache-2.0
/* A table by tid; see tids.h. */
#include "trace/tids.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_PLACES 64

static int64_t *row_at(const struct wf_tids *t, size_t place)
{
	return (int64_t *)(void *)(t->rows + place * t->row_bytes);
}

/* The thread's row, or the free place where it would be. */
static int64_t *find(const struct wf_tids *t, int64_t tid)
{
	size_t at = (size_t)((uint64_t)tid * 0x9e3779b97f4a7c15u >> 20) & (t->nr_places - 1);

	while (*row_at(t, at) && *row_at(t, at) != tid)
		at = (at + 1) & (t->nr_places - 1);
	return row_at(t, at);
}

void *wf_tids_at(const struct wf_tids *t, size_t place)
{
	int64_t *row = row_at(t, place);

	return *row ? row : NULL;
}

bool wf_tids_make_room(struct wf_tids *t, bool (*stays)(const void *row))
{
	struct wf_tids next = { .row_bytes = t->row_bytes, .nr_places = FIRST_PLACES };
	size_t nr = 0;

	if (2 * (t->nr + 2) <= t->nr_places)
		return true;
	for (size_t i = 0; i < t->nr_places; i++) {
		const void *row = wf_tids_at(t, i);

		nr += row && (!stays || stays(row));
	}
	while (next.nr_places < 4 * (nr + 2))
		next.nr_places *= 2;
	next.rows = calloc(next.nr_places, next.row_bytes);
	if (!next.rows)
		return false;
	for (size_t i = 0; i < t->nr_places; i++) {
		const void *row = wf_tids_at(t, i);

		if (row && (!stays || stays(row)))
			(void)wf_tids_row(&next, *row_at(t, i), row);
	}
	free(t->rows);
	*t = next;
	return true;
}

void *wf_tids_row(struct wf_tids *t, int64_t tid, const void *fresh)
{
	int64_t *row;

	if (tid <= 0)
		return NULL;
	row = find(t, tid);
	if (!*row) {
		memcpy(row, fresh, t->row_bytes);
		*row = tid;
		t->nr++;
	}
	return row;
}

void wf_tids_done(struct wf_tids *t)
{
	free(t->rows);
	t->rows = NULL;
	t->nr_places = t->nr = 0;
}
