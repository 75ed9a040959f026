// SPDX-License-Identifier: Apache-2.0
/* What `weft bench io-models` prints: the table and the JSON document. Called by: bench.c, models_svg.c. */
#include <math.h>
#include <string.h>

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

/* What blocking threads on NPTL reach with as many connections, or NAN. */
static double baseline(const struct wf_models *m, int connections)
{
	for (int i = 0; i < m->nr_rows; i++) {
		if (m->rows[i].connections == connections &&
		    strcmp(m->rows[i].model->name, "threads") == 0)
			return m->rows[i].median.value[WF_MODELS_PER_CPU_S];
	}
	return NAN;
}

static void print_row(const struct wf_models *m, const struct wf_models_row *row)
{
	const double *v = row->median.value;
	char text[8][32], ratio[32] = "-";
	double base = baseline(m, row->connections);

	if (row->nr_samples == 0) {
		printf("%-20s  %s\n", row->model->label, row->why_not);
		return;
	}
	if (isfinite(v[WF_MODELS_PER_CPU_S] / base))
		snprintf(ratio, sizeof(ratio), "%.2fx", v[WF_MODELS_PER_CPU_S] / base);
	for (int i = WF_MODELS_RATE; i <= WF_MODELS_SWITCHES; i++)
		wf_numbers_text(text[i], v[i]);
	wf_numbers_text(text[WF_MODELS_MEMORY], v[WF_MODELS_MEMORY] / 1024);
	printf("%-20s %9s %10s %7s %9s %9s %9s %9s %9s %9s\n", row->model->label,
	       text[WF_MODELS_RATE], text[WF_MODELS_PER_CPU_S], ratio, text[WF_MODELS_P50],
	       text[WF_MODELS_P99], text[WF_MODELS_P999], text[WF_MODELS_CALLS],
	       text[WF_MODELS_SWITCHES], text[WF_MODELS_MEMORY]);
	if (row->why_not[0])
		printf("%-20s (%d round%s, then: %s)\n", "", row->nr_samples,
		       row->nr_samples == 1 ? "" : "s", row->why_not);
}

void wf_models_show_table(const struct wf_models *m)
{
	char text[512];

	wf_models_describe(m, text, sizeof(text));
	printf("TCP echo: %s\n", text);
	for (int i = 0; i < m->nr_rows; i++) {
		if (i % m->nr_models == 0) {
			snprintf(text, sizeof(text), "%d connection%s", m->rows[i].connections,
				 m->rows[i].connections == 1 ? "" : "s");
			printf("\n%-20s %9s %10s %7s %9s %9s %9s %9s %9s %9s\n", text, "req/s",
			       "req/CPU s", "", "p50 us", "p99 us", "p99.9 us", "calls/req",
			       "switches", "KiB/conn");
		}
		print_row(m, &m->rows[i]);
	}
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
