// SPDX-License-Identifier: Apache-2.0
/* The output of `weft bench io-models`: the table and the JSON document. Called by: bench.c, models_svg.c. */
#include <limits.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "bench/models.h"
#include "numbers.h"
#include "text.h"

/* Order as in enum wf_models_metric. */
static const char *const json_names[WF_MODELS_NR_METRICS] = {
	"requests_per_s",
	"requests_per_cpu_s",
	"p50_us",
	"p99_us",
	"p999_us",
	"syscalls_per_request",
	"switches_per_request",
	"memory_bytes_per_connection",
	"load_cpus",
};

void wf_models_describe(const struct wf_models *m, char *out, size_t bytes)
{
	char where[80];

	if (m->server_cpu == m->load_cpu)
		snprintf(where, sizeof(where), "server and load share CPU %d", m->load_cpu);
	else
		snprintf(where, sizeof(where), "server on CPU %d, load on CPU %d", m->server_cpu,
			 m->load_cpu);
	snprintf(out, bytes, "%s; %s; %d bytes; medians of %d round%s of %g s", m->machine, where,
		 m->size_bytes, m->nr_rounds, m->nr_rounds == 1 ? "" : "s", m->seconds);
}

/* The figure of blocking threads on NPTL with as many connections, or NAN. */
static double baseline(const struct wf_models *m, int connections)
{
	for (int i = 0; i < m->nr_rows; i++) {
		if (m->rows[i].connections == connections &&
		    strcmp(m->rows[i].model->name, "threads") == 0)
			return m->rows[i].median.value[WF_MODELS_PER_CPU_S];
	}
	return NAN;
}

/* From left to right; what a terminal has no room for is left out, the highest `rank` first. metric: -1: the ratio. */
static const struct column {
	const char *head;
	int metric, width, rank;
} columns[] = {
	{ "req/s", WF_MODELS_RATE, 10, 3 },
	{ "req/CPU s", WF_MODELS_PER_CPU_S, 11, 1 },
	{ "", -1, 8, 4 },
	{ "p50 us", WF_MODELS_P50, 10, 5 },
	{ "p99 us", WF_MODELS_P99, 10, 2 },
	{ "p99.9 us", WF_MODELS_P999, 10, 7 },
	{ "calls/req", WF_MODELS_CALLS, 10, 8 },
	{ "switches", WF_MODELS_SWITCHES, 10, 9 },
	{ "KiB/conn", WF_MODELS_MEMORY, 10, 6 },
};

#define NR_COLUMNS ((int)(sizeof(columns) / sizeof(columns[0])))
#define LABEL_COLUMNS 19 /* "threads under weft" */

static bool is_shown[sizeof(columns) / sizeof(columns[0])];

/* False: not all are shown. A file is as wide as the table. */
static bool choose_columns(void)
{
	bool has_all = true;
	int left = isatty(STDOUT_FILENO) ? wf_numbers_columns(STDOUT_FILENO) : INT_MAX;

	left -= LABEL_COLUMNS;
	for (int rank = 1; rank <= NR_COLUMNS; rank++) {
		for (int i = 0; i < NR_COLUMNS; i++) {
			if (columns[i].rank != rank)
				continue;
			is_shown[i] = left >= columns[i].width;
			left = is_shown[i] ? left - columns[i].width : 0;
			has_all = has_all && is_shown[i];
		}
	}
	return has_all;
}

static void print_row(const struct wf_models *m, const struct wf_models_row *row)
{
	const double *v = row->median.value;
	double base = baseline(m, row->connections);
	char text[32];

	if (row->nr_samples == 0) {
		printf("%-*s %s\n", LABEL_COLUMNS, row->model->label, row->why_not);
		return;
	}
	printf("%-*s", LABEL_COLUMNS, row->model->label);
	for (int i = 0; i < NR_COLUMNS; i++) {
		int metric = columns[i].metric;

		if (!is_shown[i])
			continue;
		if (metric >= 0)
			wf_numbers_text(text, v[metric] / (metric == WF_MODELS_MEMORY ? 1024 : 1));
		else if (isfinite(v[WF_MODELS_PER_CPU_S] / base))
			snprintf(text, sizeof(text), "%.2fx", v[WF_MODELS_PER_CPU_S] / base);
		else
			strcpy(text, "-");
		printf("%*s", columns[i].width, text);
	}
	putchar('\n');
	if (row->why_not[0])
		printf("%-*s (%d round%s, then: %s)\n", LABEL_COLUMNS, "", row->nr_samples,
		       row->nr_samples == 1 ? "" : "s", row->why_not);
}

void wf_models_show_table(const struct wf_models *m)
{
	bool has_all = choose_columns();
	char text[512];

	wf_models_describe(m, text, sizeof(text));
	printf("TCP echo: %s\n", text);
	for (int i = 0; i < m->nr_rows; i++) {
		if (i % m->nr_models == 0) {
			snprintf(text, sizeof(text), "%d connection%s", m->rows[i].connections,
				 m->rows[i].connections == 1 ? "" : "s");
			printf("\n%-*s", LABEL_COLUMNS, text);
			for (int k = 0; k < NR_COLUMNS; k++)
				printf("%*s", is_shown[k] ? columns[k].width : 0,
				       is_shown[k] ? columns[k].head : "");
			putchar('\n');
		}
		print_row(m, &m->rows[i]);
	}
	if (!has_all)
		printf("\nThere is more on a wider terminal.\n");
}

static void json_values(struct wf_text_json *j, const struct wf_models_sample *s)
{
	for (int i = 0; i < WF_MODELS_NR_METRICS; i++)
		wf_text_json_real(j, json_names[i], s->value[i]);
}

void wf_models_show_json(const struct wf_models *m)
{
	struct wf_text_json j = { .out = stdout };

	wf_text_json_begin(&j, NULL, '{');
	wf_text_json_string(&j, "benchmark", "io-models");
	wf_text_json_string(&j, "machine", m->machine);
	wf_text_json_number(&j, "server_cpu", m->server_cpu);
	wf_text_json_number(&j, "load_cpu", m->load_cpu);
	wf_text_json_number(&j, "message_bytes", m->size_bytes);
	wf_text_json_real(&j, "seconds", m->seconds);
	wf_text_json_number(&j, "rounds", m->nr_rounds);
	wf_text_json_begin(&j, "rows", '[');
	for (int i = 0; i < m->nr_rows; i++) {
		const struct wf_models_row *row = &m->rows[i];

		wf_text_json_begin(&j, NULL, '{');
		wf_text_json_number(&j, "connections", row->connections);
		wf_text_json_string(&j, "model", row->model->name);
		if (row->why_not[0])
			wf_text_json_string(&j, "why_not", row->why_not);
		if (row->nr_samples > 0) {
			wf_text_json_begin(&j, "median", '{');
			json_values(&j, &row->median);
			wf_text_json_end(&j, '}');
		}
		wf_text_json_begin(&j, "samples", '[');
		for (int k = 0; k < row->nr_samples; k++) {
			wf_text_json_begin(&j, NULL, '{');
			json_values(&j, &row->samples[k]);
			wf_text_json_end(&j, '}');
		}
		wf_text_json_end(&j, ']');
		wf_text_json_end(&j, '}');
	}
	wf_text_json_end(&j, ']');
	wf_text_json_end(&j, '}');
}
