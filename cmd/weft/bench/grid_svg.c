// SPDX-License-Identifier: Apache-2.0
/*
 * The picture of a grid: where a row has a distribution, the share of all that took no longer, over a logarithmic axis of
 * time; below, a bar per side and row, over a logarithmic axis, since the sides may be a hundredfold apart.
 *
 * Called by: grid.c. Invariant: as in svg.h; every number that a bar shows stands next to it.
 */
#include <math.h>

#include "bench/grid.h"
#include "numbers.h"
#include "svg.h"

#define WIDTH 900
#define HEAD 64
#define PLOT_HEIGHT 260
#define PLOT_LEFT 70
#define PLOT_WIDTH 780
#define LEGEND_LEFT (PLOT_LEFT + PLOT_WIDTH - 260) /* few things take that long */
#define LABEL_WIDTH 290
#define BAR_WIDTH 440
#define BAR_HEIGHT 12
#define ROW_GAP 10

/* The first row that has a distribution on any side, or -1. */
static int row_with_distribution(const struct wf_grid *g)
{
	for (int row = 0; row < g->nr_rows; row++) {
		for (int side = 0; side < g->nr_sides; side++) {
			if (wf_grid_at(g, row, side)->nr_points > 1)
				return row;
		}
	}
	return -1;
}

static double x_of(double ns, double from, double to)
{
	return PLOT_LEFT + log(ns / from) / log(to / from) * PLOT_WIDTH;
}

static void put_time(char out[32], double ns)
{
	if (ns < 1e3)
		snprintf(out, 32, "%.0f ns", ns);
	else if (ns < 1e6)
		snprintf(out, 32, "%.0f us", ns / 1e3);
	else
		snprintf(out, 32, "%.0f ms", ns / 1e6);
}

static void draw_axes(FILE *out, double y, double from, double to)
{
	char text[32];

	for (int i = 0; i <= 4; i++) {
		double at = y + PLOT_HEIGHT - i * PLOT_HEIGHT / 4.0;

		fprintf(out, "<path d=\"M%d %.1fh%d\" class=\"g\"/>\n", PLOT_LEFT, at, PLOT_WIDTH);
		snprintf(text, sizeof(text), "%d %%", i * 25);
		wf_svg_text(out, PLOT_LEFT - 6, at + 4, "class=\"l\"", text);
	}
	for (double ns = from; ns <= to * 1.001; ns *= 10) {
		double at = x_of(ns, from, to);

		fprintf(out, "<path d=\"M%.1f %.1fv%d\" class=\"g\"/>\n", at, y, PLOT_HEIGHT);
		put_time(text, ns);
		wf_svg_text(out, at, y + PLOT_HEIGHT + 16, "text-anchor=\"middle\" class=\"n\"",
			    text);
	}
}

static void draw_curve(FILE *out, const struct wf_grid_cell *cell, const char *stroke, double y,
		       double from, double to)
{
	double last = y + PLOT_HEIGHT;

	fprintf(out, "<path fill=\"none\" stroke=\"%s\" stroke-width=\"2.5\" d=\"M%.1f %.1f",
		stroke, x_of(cell->ns[0], from, to), last);
	for (int i = 0; i < cell->nr_points; i++)
		fprintf(out, "L%.1f %.1f", x_of(fmax(cell->ns[i], from), from, to),
			y + PLOT_HEIGHT * (1 - cell->share[i]));
	fputs("\"/>\n", out);
}

static double draw_distribution(const struct wf_grid *g, FILE *out, int row, double y)
{
	double from = INFINITY, to = 0;
	char text[200], p50[32], p99[32];
	int line = 0;

	for (int side = 0; side < g->nr_sides; side++) {
		const struct wf_grid_cell *cell = wf_grid_at(g, row, side);

		for (int i = 0; i < cell->nr_points; i++) {
			from = fmin(from, fmax(cell->ns[i], 1));
			to = fmax(to, cell->ns[i]);
		}
	}
	from = pow(10, floor(log10(from)));
	to = pow(10, ceil(log10(fmax(to, from * 10))));
	snprintf(text, sizeof(text), "%s: the share that took no longer", g->rows[row].label);
	wf_svg_text(out, 16, y, "class=\"t\"", text);
	y += 16;
	draw_axes(out, y, from, to);
	for (int side = 0; side < g->nr_sides; side++) {
		const struct wf_grid_cell *cell = wf_grid_at(g, row, side);

		if (cell->nr_points < 2)
			continue;
		draw_curve(out, cell, g->sides[side].colour, y, from, to);
		put_time(p50, wf_grid_value(g, row, side, WF_GRID_P50));
		put_time(p99, wf_grid_value(g, row, side, WF_GRID_P99));
		snprintf(text, sizeof(text), "%s: p50 %s, p99 %s", g->sides[side].label, p50, p99);
		fprintf(out, "<rect x=\"%d\" y=\"%.1f\" width=\"12\" height=\"12\" fill=\"%s\"/>\n",
			LEGEND_LEFT, y + PLOT_HEIGHT - 18 * (g->nr_sides + 1) + 18 * line,
			g->sides[side].colour);
		wf_svg_text(out, LEGEND_LEFT + 18,
			    y + PLOT_HEIGHT - 18 * (g->nr_sides + 1) + 10 + 18 * line++,
			    "class=\"n\"", text);
	}
	return y + PLOT_HEIGHT + 48;
}

static double row_height(const struct wf_grid *g)
{
	return g->nr_sides * (BAR_HEIGHT + 2) + ROW_GAP;
}

static void draw_bars(const struct wf_grid *g, FILE *out, int row, double y)
{
	double min = INFINITY, max = 0;
	char text[240], number[32];

	for (int side = 0; side < g->nr_sides; side++) {
		double v = wf_grid_value(g, row, side, WF_GRID_MEAN);

		if (v > 0) {
			min = fmin(min, v);
			max = fmax(max, v);
		}
	}
	snprintf(text, sizeof(text), "%s, %s", g->rows[row].label, g->rows[row].unit);
	wf_svg_text(out, LABEL_WIDTH - 8, y + row_height(g) / 2, "class=\"l\"", text);
	for (int side = 0; side < g->nr_sides; side++, y += BAR_HEIGHT + 2) {
		double v = wf_grid_value(g, row, side, WF_GRID_MEAN), width = 3;

		/* The shortest bar of a row is a tenth of the longest's decade, so that it is seen. */
		if (v > 0 && max > 0)
			width = fmax(3, BAR_WIDTH * log(10 * v / min) / log(10 * max / min));
		if (v > 0)
			fprintf(out,
				"<rect x=\"%d\" y=\"%.1f\" width=\"%.1f\" height=\"%d\" fill=\"%s\"/>\n",
				LABEL_WIDTH, y, width, BAR_HEIGHT, g->sides[side].colour);
		snprintf(text, sizeof(text), "%s %s", wf_numbers_text(number, v),
			 v > 0 ? g->sides[side].label : wf_grid_at(g, row, side)->why_not);
		wf_svg_text(out, LABEL_WIDTH + 6 + (v > 0 ? width : 0), y + BAR_HEIGHT - 2,
			    "class=\"n\"", text);
	}
}

void wf_grid_svg(const struct wf_grid *g, FILE *out)
{
	int row_of_curve = row_with_distribution(g), nr = 0, height;
	char text[400];
	double y = HEAD;

	for (int row = 0; row < g->nr_rows; row++)
		nr += wf_grid_has_row(g, row);
	height = (int)(HEAD + (row_of_curve >= 0 ? PLOT_HEIGHT + 64 : 0) + 40 + nr * row_height(g));
	wf_svg_begin(out, WIDTH, height, g->title);
	snprintf(text, sizeof(text), "%s, %s; medians of %d round%s in turn", g->machine, g->date,
		 g->nr_rounds, g->nr_rounds == 1 ? "" : "s");
	wf_svg_text(out, 16, 46, "class=\"n\"", text);
	y += 12;
	if (row_of_curve >= 0)
		y = draw_distribution(g, out, row_of_curve, y);
	wf_svg_text(out, 16, y, "class=\"t\"", "mean of each row, logarithmic (less is better)");
	y += 14;
	for (int row = 0; row < g->nr_rows; row++) {
		if (!wf_grid_has_row(g, row))
			continue;
		draw_bars(g, out, row, y);
		y += row_height(g);
	}
	wf_svg_end(out);
}
