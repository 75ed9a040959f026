// SPDX-License-Identifier: Apache-2.0
/* Prints a grid: the table, and the JSON document. Called by: grid.c. */
#include <math.h>
#include <string.h>

#include "bench/grid.h"
#include "numbers.h"
#include "text.h"

#define LABEL_COLUMNS 34
#define CELL_COLUMNS (10 + 9 + 10 + 13)

static const int widths[] = { 10, 9, 10, 13 }; /* mean, p50, p99, max */

static const char *const json_names[WF_GRID_NR_METRICS] = { "mean", "p50", "p99", "max", "cpu_s" };

/* With two sides there is room for the distribution of each, with more for the means. */
static int nr_columns(const struct wf_grid *g)
{
	return g->nr_sides <= 2 ? 4 : 1;
}

static void print_head(const struct wf_grid *g)
{
	static const char *const names[] = { "mean", "p50", "p99", "max" };

	printf("%s: %s; medians of %d round%s in turn, the largest maximum\n\n", g->title,
	       g->machine, g->nr_rounds, g->nr_rounds == 1 ? "" : "s");
	printf("%-*s", LABEL_COLUMNS, "");
	for (int side = 0; side < g->nr_sides; side++)
		printf("%*s", nr_columns(g) == 1 ? 20 : CELL_COLUMNS, g->sides[side].label);
	putchar('\n');
	printf("%-*s", LABEL_COLUMNS, "");
	for (int side = 0; side < g->nr_sides; side++) {
		if (nr_columns(g) == 1)
			printf("%10s%10s", "", "CPU ms");
		else
			for (int i = 0; i < nr_columns(g); i++)
				printf("%*s", widths[i], names[i]);
	}
	putchar('\n');
}

static void print_cell(const struct wf_grid *g, int row, int side)
{
	char text[32];

	if (wf_grid_at(g, row, side)->nr_samples == 0) {
		printf("%*s", nr_columns(g) == 1 ? 20 : CELL_COLUMNS, "-");
	} else if (nr_columns(g) == 1) {
		printf("%10s", wf_numbers_text(text, wf_grid_value(g, row, side, WF_GRID_MEAN)));
		printf("%10s",
		       wf_numbers_text(text, 1e3 * wf_grid_value(g, row, side, WF_GRID_CPU)));
	} else {
		for (int i = 0; i < nr_columns(g); i++)
			printf("%*s", widths[i],
			       wf_numbers_text(
				       text, wf_grid_value(g, row, side, (enum wf_grid_metric)i)));
	}
}

static void print_row(const struct wf_grid *g, int row)
{
	char label[64], text[32];
	double first = wf_grid_value(g, row, 0, WF_GRID_MEAN);
	double last = wf_grid_value(g, row, g->nr_sides - 1, WF_GRID_MEAN);

	snprintf(label, sizeof(label), "%s, %s", g->rows[row].label, g->rows[row].unit);
	printf("%-*s", LABEL_COLUMNS, label);
	for (int side = 0; side < g->nr_sides; side++)
		print_cell(g, row, side);
	if (isfinite(first / last))
		printf("  %7sx", wf_numbers_text(text, first / last));
	putchar('\n');
	for (int side = 0; side < g->nr_sides; side++) {
		const struct wf_grid_cell *cell = wf_grid_at(g, row, side);

		if (cell->why_not[0])
			printf("%-*s(%s: %s)\n", 4, "", g->sides[side].label, cell->why_not);
	}
}

void wf_grid_show(const struct wf_grid *g)
{
	print_head(g);
	for (int row = 0; row < g->nr_rows; row++) {
		if (wf_grid_has_row(g, row))
			print_row(g, row);
	}
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
