// SPDX-License-Identifier: Apache-2.0
/*
 * Prints a grid: the table, a line for each side of a row, and the JSON document.
 *
 * Called by: grid.c. Invariant: no line of figures is wider than the terminal, from 30 columns on.
 */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "bench/grid.h"
#include "numbers.h"
#include "text.h"

#define LABEL_COLUMNS 12

static const char *const json_names[WF_GRID_NR_METRICS] = { "mean", "p50", "p99", "max", "cpu_s" };

/* From left to right; what a narrow terminal has no room for is left out, the highest `rank` first. */
static const struct column {
	const char *head;
	enum wf_grid_metric metric;
	double factor;
	int width, rank;
} columns[] = {
	{ "mean", WF_GRID_MEAN, 1, 9, 0 },    { "p50", WF_GRID_P50, 1, 10, 3 },
	{ "p99", WF_GRID_P99, 1, 10, 2 },     { "max", WF_GRID_MAX, 1, 13, 4 },
	{ "CPU ms", WF_GRID_CPU, 1e3, 9, 5 },
};

#define NR_COLUMNS (sizeof(columns) / sizeof(columns[0]))
#define TIMES_COLUMNS 9 /* rank 1 */

static bool is_shown[NR_COLUMNS], has_times;

static void choose_columns(int width)
{
	int left = width - LABEL_COLUMNS - columns[0].width;

	is_shown[0] = true;
	has_times = left >= TIMES_COLUMNS;
	left -= has_times ? TIMES_COLUMNS : 0;
	for (int rank = 2; rank <= 5; rank++) {
		for (size_t i = 1; i < NR_COLUMNS; i++) {
			if (columns[i].rank != rank)
				continue;
			is_shown[i] = left >= columns[i].width;
			left -= is_shown[i] ? columns[i].width : left;
		}
	}
}

/* Text in lines of that width, broken at spaces. */
static void print_wrapped(const char *text, int width)
{
	while ((int)strlen(text) > width) {
		int len = width;

		while (len > 0 && text[len] != ' ')
			len--;
		if (len == 0)
			len = (int)strcspn(text, " ");
		printf("%.*s\n", len, text);
		text += len + (text[len] == ' ');
	}
	printf("%s\n", text);
}

static void print_head(const struct wf_grid *g, int width)
{
	char text[512];

	snprintf(text, sizeof(text), "%s", g->title);
	print_wrapped(text, width);
	snprintf(text, sizeof(text), "%s, %s", g->machine, g->date);
	print_wrapped(text, width);
	snprintf(text, sizeof(text), "medians of %d round%s in turn, the largest maximum",
		 g->nr_rounds, g->nr_rounds == 1 ? "" : "s");
	print_wrapped(text, width);
	printf("\n%-*s", LABEL_COLUMNS, "");
	for (size_t i = 0; i < NR_COLUMNS; i++) {
		if (is_shown[i])
			printf("%*s", columns[i].width, columns[i].head);
	}
	printf("%*s\n", has_times ? TIMES_COLUMNS : 0, has_times ? "times" : "");
}

static void print_side(const struct wf_grid *g, int row, int side)
{
	const struct wf_grid_cell *cell = wf_grid_at(g, row, side);
	double times = wf_grid_value(g, row, 0, WF_GRID_MEAN) /
		       wf_grid_value(g, row, side, WF_GRID_MEAN);
	char text[32];

	printf("  %-*s", LABEL_COLUMNS - 2, g->sides[side].label);
	if (cell->nr_samples == 0) {
		printf("  %s\n", cell->why_not);
		return;
	}
	for (size_t i = 0; i < NR_COLUMNS; i++) {
		if (is_shown[i])
			printf("%*s", columns[i].width,
			       wf_numbers_text(text, columns[i].factor *
							     wf_grid_value(g, row, side,
									   columns[i].metric)));
	}
	if (has_times && side > 0 && isfinite(times))
		printf("%*sx", TIMES_COLUMNS - 1, wf_numbers_text(text, times));
	putchar('\n');
	if (cell->why_not[0])
		printf("    (%s)\n", cell->why_not);
}

void wf_grid_show(const struct wf_grid *g)
{
	int width = wf_numbers_columns(STDOUT_FILENO);

	choose_columns(width);
	print_head(g, width);
	for (int row = 0; row < g->nr_rows; row++) {
		if (!wf_grid_has_row(g, row))
			continue;
		printf("%s, %s\n", g->rows[row].label, g->rows[row].unit);
		for (int side = 0; side < g->nr_sides; side++)
			print_side(g, row, side);
	}
	if (!is_shown[NR_COLUMNS - 1])
		print_wrapped("There is more on a wider terminal, and with --json.", width);
}

static void json_cell(struct wf_text_json *j, const struct wf_grid *g, int row, int side)
{
	const struct wf_grid_cell *cell = wf_grid_at(g, row, side);

	wf_text_json_begin(j, g->sides[side].name, '{');
	if (cell->why_not[0])
		wf_text_json_string(j, "why_not", cell->why_not);
	if (cell->nr_samples > 0) {
		wf_text_json_begin(j, "median", '{');
		for (int m = 0; m < WF_GRID_NR_METRICS; m++)
			wf_text_json_real(j, json_names[m],
					  wf_grid_value(g, row, side, (enum wf_grid_metric)m));
		wf_text_json_end(j, '}');
	}
	wf_text_json_begin(j, "samples", '[');
	for (int i = 0; i < cell->nr_samples; i++) {
		wf_text_json_begin(j, NULL, '{');
		for (int m = 0; m < WF_GRID_NR_METRICS; m++)
			wf_text_json_real(j, json_names[m], cell->samples[m][i]);
		wf_text_json_end(j, '}');
	}
	wf_text_json_end(j, ']');
	if (cell->nr_points > 0) {
		wf_text_json_begin(j, "distribution", '[');
		for (int i = 0; i < cell->nr_points; i++) {
			wf_text_json_begin(j, NULL, '{');
			wf_text_json_real(j, "ns", cell->ns[i]);
			wf_text_json_real(j, "share", cell->share[i]);
			wf_text_json_end(j, '}');
		}
		wf_text_json_end(j, ']');
	}
	wf_text_json_end(j, '}');
}

void wf_grid_show_json(const struct wf_grid *g)
{
	struct wf_text_json j = { .out = stdout };

	wf_text_json_begin(&j, NULL, '{');
	wf_text_json_string(&j, "benchmark", g->benchmark);
	wf_text_json_string(&j, "machine", g->machine);
	wf_text_json_string(&j, "date", g->date);
	wf_text_json_number(&j, "rounds", g->nr_rounds);
	wf_text_json_begin(&j, "rows", '[');
	for (int row = 0; row < g->nr_rows; row++) {
		if (!wf_grid_has_row(g, row))
			continue;
		wf_text_json_begin(&j, NULL, '{');
		wf_text_json_string(&j, "name", g->rows[row].name);
		wf_text_json_string(&j, "label", g->rows[row].label);
		wf_text_json_string(&j, "unit", g->rows[row].unit);
		for (int side = 0; side < g->nr_sides; side++)
			json_cell(&j, g, row, side);
		wf_text_json_end(&j, '}');
	}
	wf_text_json_end(&j, ']');
	wf_text_json_end(&j, '}');
}
