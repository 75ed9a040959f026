// SPDX-License-Identifier: Apache-2.0
/*
 * The picture of `weft bench io-models --svg`: a column per number of connections, a row of panels per question, a bar
 * per model. Latencies span from the median to the 99.9th percentile on a logarithmic axis.
 *
 * Called by: bench.c. Invariant: plain SVG 1.1 with no script, font or style from elsewhere; every number that a
 * bar shows stands next to it.
 */
#include <math.h>

#include "bench/models.h"
#include "numbers.h"
#include "svg.h"

#define LABEL_WIDTH 160
#define COLUMN_WIDTH 370
#define BAR_WIDTH 200 /* the rest of a column is for the number */
#define BAR_HEIGHT 14
#define LINE_HEIGHT 22
#define HEAD_HEIGHT 84
#define TITLE_HEIGHT 34
#define PANEL_GAP 14

static const struct panel {
	const char *title;
	enum wf_models_metric metric;
	double unit;
	bool is_latency;
} panels[] = {
	{ "requests per second of the server's CPU time (more is better)", WF_MODELS_PER_CPU_S, 1,
	  false },
	{ "requests per second (more is better)", WF_MODELS_RATE, 1, false },
	{ "latency: p50, p99, p99.9, microseconds, logarithmic (less is better)", WF_MODELS_P50, 1,
	  true },
	{ "system calls per request", WF_MODELS_CALLS, 1, false },
	{ "context switches per request", WF_MODELS_SWITCHES, 1, false },
	{ "resident memory per connection, KiB", WF_MODELS_MEMORY, 1024, false },
};

#define NR_PANELS (sizeof(panels) / sizeof(panels[0]))

static const struct wf_models_row *row_at(const struct wf_models *m, int column, int model)
{
	return &m->rows[column * m->nr_models + model];
}

/* Smallest and largest of what a panel shows in a column. */
static void find_range(const struct wf_models *m, int column, const struct panel *p,
		       double *out_min, double *out_max)
{
	double min = INFINITY, max = 0;

	for (int i = 0; i < m->nr_models; i++) {
		const double *v = row_at(m, column, i)->median.value;

		for (int metric = (int)p->metric;
		     metric <= (p->is_latency ? WF_MODELS_P999 : (int)p->metric); metric++) {
			if (!isfinite(v[metric]))
				continue;
			min = fmin(min, v[metric]);
			max = fmax(max, v[metric]);
		}
	}
	*out_min = min;
	*out_max = max;
}

static void draw_bar(FILE *out, const struct wf_models_row *row, const struct panel *p, double x,
		     double y, double max)
{
	double value = row->median.value[p->metric];
	char number[32];

	if (isfinite(value))
		fprintf(out,
			"<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%d\" fill=\"%s\"/>\n",
			x, y, max > 0 && value > 0 ? fmax(1, value / max * BAR_WIDTH) : 1,
			BAR_HEIGHT, row->model->is_woven ? WF_SVG_COLOUR_WEFT : WF_SVG_COLOUR);
	wf_svg_text(out, x + 6 + (max > 0 && value > 0 ? value / max * BAR_WIDTH : 0),
		    y + BAR_HEIGHT - 2, "class=\"n\"", wf_numbers_text(number, value / p->unit));
}

/* A line from p50 to p99.9, with a dot, a long and a short tick. */
static void draw_span(FILE *out, const struct wf_models_row *row, double x, double y, double min,
		      double max)
{
	const char *colour = row->model->is_woven ? WF_SVG_COLOUR_WEFT : WF_SVG_COLOUR;
	double at[3], range = log(max / min), middle = y + BAR_HEIGHT / 2.0;
	char number[3][32], text[110];

	for (int i = 0; i < 3; i++) {
		double value = row->median.value[WF_MODELS_P50 + i];

		at[i] = x + 5 + (range > 0 ? log(value / min) / range * (BAR_WIDTH - 10) : 0);
		wf_numbers_text(number[i], value);
	}
	fprintf(out,
		"<path d=\"M%.1f %.1fH%.1f\" stroke=\"%s\" stroke-width=\"3\"/>"
		"<circle cx=\"%.1f\" cy=\"%.1f\" r=\"5\" fill=\"%s\"/>"
		"<path d=\"M%.1f %.1fv12M%.1f %.1fv6\" stroke=\"%s\" stroke-width=\"3\"/>\n",
		at[0], middle, at[2], colour, at[0], middle, colour, at[1], middle - 6, at[2],
		middle - 3, colour);
	snprintf(text, sizeof(text), "%s / %s / %s", number[0], number[1], number[2]);
	wf_svg_text(out, x + BAR_WIDTH + 8, y + BAR_HEIGHT - 2, "class=\"n\"", text);
}

static void draw_panel(const struct wf_models *m, FILE *out, const struct panel *p, int column,
		       double y)
{
	double x = LABEL_WIDTH + column * COLUMN_WIDTH, min, max;

	find_range(m, column, p, &min, &max);
	for (int i = 0; i < m->nr_models; i++, y += LINE_HEIGHT) {
		const struct wf_models_row *row = row_at(m, column, i);

		if (row->nr_samples == 0)
			wf_svg_text(out, x + 4, y + BAR_HEIGHT - 2, "class=\"n\"", "not measured");
		else if (p->is_latency)
			draw_span(out, row, x, y, min, max);
		else
			draw_bar(out, row, p, x, y, max);
	}
	fprintf(out, "<path d=\"M%.1f %.1fv%d\" stroke=\"#888\"/>\n", x,
		y - m->nr_models * LINE_HEIGHT - 4, m->nr_models * LINE_HEIGHT);
}

static void draw_labels(const struct wf_models *m, FILE *out, double y)
{
	for (int i = 0; i < m->nr_models; i++, y += LINE_HEIGHT)
		wf_svg_text(out, LABEL_WIDTH - 8, y + BAR_HEIGHT - 2,
			    m->models[i]->is_woven ? "class=\"l\" font-weight=\"bold\""
						   : "class=\"l\"",
			    m->models[i]->label);
}

void wf_models_svg_write(const struct wf_models *m, FILE *out)
{
	int panel_height = TITLE_HEIGHT + m->nr_models * LINE_HEIGHT + PANEL_GAP;
	int width = LABEL_WIDTH + m->nr_connections * COLUMN_WIDTH;
	int height = HEAD_HEIGHT + (int)NR_PANELS * panel_height;
	char text[512];

	if (width < 900)
		width = 900; /* the line that says what was measured */
	wf_svg_begin(out, width, height, "TCP echo by I/O model");
	wf_models_describe(m, text, sizeof(text));
	wf_svg_text(out, 16, 46, "class=\"n\"", text);
	for (int column = 0; column < m->nr_connections; column++) {
		snprintf(text, sizeof(text), "%d connection%s", m->connections[column],
			 m->connections[column] == 1 ? "" : "s");
		wf_svg_text(out, LABEL_WIDTH + column * COLUMN_WIDTH, 74,
			    "font-size=\"15\" font-weight=\"bold\"", text);
	}
	for (size_t i = 0; i < NR_PANELS; i++) {
		double y = HEAD_HEIGHT + (double)i * panel_height;

		wf_svg_text(out, 16, y + 18, "class=\"t\"", panels[i].title);
		draw_labels(m, out, y + TITLE_HEIGHT);
		for (int column = 0; column < m->nr_connections; column++)
			draw_panel(m, out, &panels[i], column, y + TITLE_HEIGHT);
	}
	wf_svg_end(out);
}
