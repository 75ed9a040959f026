// SPDX-License-Identifier: Apache-2.0
/*
 * `weft bench report`: all benchmarks of a machine in one page of HTML.
 *
 * Called by: bench.c. Invariant: the page is one file, has no script, and loads nothing from anywhere.
 */
#include "bench/bench.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bench/grid.h"
#include "bench/models.h"
#include "cmd.h"
#include "numbers.h"
#include "svg.h"

static const char style[] =
	":root{color-scheme:light dark;--ink:#222;--soft:#555;--line:#ddd;--paper:#fff;--weft:#c2410c}\n"
	"@media(prefers-color-scheme:dark){:root{--ink:#e8e6e3;--soft:#b0aca6;--line:#444;"
	"--paper:#1b1a19;--weft:#f0793e}}\n"
	"body{margin:0 auto;max-width:60rem;padding:1rem;font:1rem/1.5 system-ui,sans-serif;"
	"color:var(--ink);background:var(--paper)}\n"
	"h1{line-height:1.2}h2{margin-top:2.5rem}p{color:var(--soft)}\n"
	".scroll{overflow-x:auto}table{border-collapse:collapse;font-size:.9rem;"
	"font-variant-numeric:tabular-nums}\n"
	"th,td{padding:.25rem .6rem;border-bottom:1px solid var(--line);text-align:right;"
	"white-space:nowrap}\n"
	"th:first-child,td:first-child{text-align:left}th.row{padding-top:.8rem;white-space:normal}\n"
	".weft{color:var(--weft);font-weight:bold}.why{white-space:normal;text-align:left;"
	"color:var(--soft)}\n"
	"figure{margin:1.5rem 0;overflow-x:auto}svg{width:100%;min-width:44rem;height:auto;"
	"fill:var(--ink)}svg .bg{fill:var(--paper)}\n"
	"svg .n{fill:var(--soft)}\n"
	"@media print{:root{--ink:#000;--soft:#333;--line:#999;--paper:#fff}"
	"h2{break-after:avoid}figure,tr{break-inside:avoid}.scroll{overflow:visible}"
	"body{max-width:none;font-size:9pt}table{font-size:8pt}svg{min-width:0}}\n";

enum part {
	THREADS,
	MODELS,
	RING,
	IO_MODELS,
	NR_PARTS
};

static const char *const part_names[NR_PARTS] = { "threads", "models", "ring", "io-models" };

struct page {
	const char *file;
	int nr_rounds;
	bool is_help;
	bool has[NR_PARTS];
	char machine[200];
	struct wf_grid threads, threading, ring;
	struct wf_models models;
};

static void put_number(FILE *out, double value, const char *class)
{
	char text[32];

	fprintf(out, "<td%s%s%s>%s</td>", *class ? " class=\"" : "", class, *class ? "\"" : "",
		wf_numbers_text(text, value));
}

static void put_paragraph(FILE *out, const char *tag, const char *text)
{
	fprintf(out, "<%s>", tag);
	wf_svg_escaped(out, text);
	fprintf(out, "</%s>\n", tag);
}

/* --- a grid --- */

static bool has_values(const struct wf_grid *g, enum wf_grid_metric metric)
{
	for (int row = 0; row < g->nr_rows; row++) {
		for (int side = 0; side < g->nr_sides; side++) {
			if (isfinite(wf_grid_value(g, row, side, metric)))
				return true;
		}
	}
	return false;
}

/* A row is as many lines as there are sides: side by side they would be wider than any screen. */
static void grid_row(const struct wf_grid *g, FILE *out, int row,
		     const enum wf_grid_metric *metrics, int nr)
{
	double first = wf_grid_value(g, row, 0, WF_GRID_MEAN);

	fprintf(out, "<tbody><tr><th class=\"row\" colspan=\"%d\">", nr + 2);
	wf_svg_escaped(out, g->rows[row].label);
	fprintf(out, ", %s</th></tr>\n", g->rows[row].unit);
	for (int side = 0; side < g->nr_sides; side++) {
		const struct wf_grid_cell *cell = wf_grid_at(g, row, side);

		fputs("<tr><td>", out);
		wf_svg_escaped(out, g->sides[side].label);
		fputs("</td>", out);
		if (cell->nr_samples == 0) {
			fprintf(out, "<td class=\"why\" colspan=\"%d\">", nr + 1);
			wf_svg_escaped(out, cell->why_not);
			fputs("</td></tr>\n", out);
			continue;
		}
		for (int i = 0; i < nr; i++)
			put_number(out, wf_grid_value(g, row, side, metrics[i]), "");
		if (side > 0)
			put_number(out, first / wf_grid_value(g, row, side, WF_GRID_MEAN), "weft");
		else
			fputs("<td></td>", out);
		fputs("</tr>\n", out);
	}
	fputs("</tbody>\n", out);
}

static void put_grid(const struct wf_grid *g, FILE *out, const char *what)
{
	static const enum wf_grid_metric all[] = { WF_GRID_MEAN, WF_GRID_P50, WF_GRID_P99,
						   WF_GRID_MAX, WF_GRID_CPU };
	static const char *const names[] = { "mean", "p50", "p99", "max", "CPU s" };
	enum wf_grid_metric metrics[WF_GRID_NR_METRICS];
	int nr = 0;

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if (has_values(g, all[i]))
			metrics[nr++] = all[i];
	}
	put_paragraph(out, "h2", g->title);
	put_paragraph(out, "p", what);
	fputs("<figure>\n", out);
	wf_grid_svg(g, out);
	fputs("</figure>\n<div class=\"scroll\"><table>\n<thead><tr><th></th>", out);
	for (int i = 0; i < nr; i++)
		fprintf(out, "<th>%s</th>", names[metrics[i]]);
	fputs("<th>times</th></tr></thead>\n", out);
	for (int row = 0; row < g->nr_rows; row++) {
		if (wf_grid_has_row(g, row))
			grid_row(g, out, row, metrics, nr);
	}
	fputs("</table></div>\n", out);
}

/* --- the I/O models --- */

static void models_row(const struct wf_models *m, FILE *out, int i)
{
	const struct wf_models_row *row = &m->rows[i];
	const char *class = row->model->is_woven ? "weft" : "";

	fprintf(out, "<tr><td%s>", row->model->is_woven ? " class=\"weft\"" : "");
	wf_svg_escaped(out, row->model->label);
	fprintf(out, "</td><td>%d</td>", row->connections);
	if (row->nr_samples == 0) {
		fputs("<td class=\"why\" colspan=\"8\">", out);
		wf_svg_escaped(out, row->why_not);
		fputs("</td></tr>\n", out);
		return;
	}
	for (int metric = WF_MODELS_RATE; metric <= WF_MODELS_SWITCHES; metric++)
		put_number(out, row->median.value[metric], class);
	put_number(out, row->median.value[WF_MODELS_MEMORY] / 1024, class);
	fputs("</tr>\n", out);
}

static void put_models(const struct wf_models *m, FILE *out)
{
	static const char *const heads[] = { "model",        "connections", "req/s",    "req/CPU s",
					     "p50 us",       "p99 us",      "p99.9 us", "calls/req",
					     "switches/req", "KiB/conn" };
	char text[512];

	put_paragraph(out, "h2", "TCP echo by I/O model");
	wf_models_describe(m, text, sizeof(text));
	put_paragraph(out, "p", text);
	fputs("<figure>\n", out);
	wf_models_svg_write(m, out);
	fputs("</figure>\n<div class=\"scroll\"><table>\n<thead><tr>", out);
	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
		fprintf(out, "<th>%s</th>", heads[i]);
	fputs("</tr></thead>\n<tbody>\n", out);
	for (int i = 0; i < m->nr_rows; i++)
		models_row(m, out, i);
	fputs("</tbody></table></div>\n", out);
}

/* --- the page --- */

static void put_page(const struct page *p, FILE *out)
{
	char line[400], date[32];
	time_t now = time(NULL);

	strftime(date, sizeof(date), "%Y-%m-%d", localtime(&now));
	snprintf(line, sizeof(line),
		 "%s; weft %s; %s; %d round%s in turn: medians, and the largest "
		 "maximum.",
		 p->machine, WEFT_VERSION, date, p->nr_rounds, p->nr_rounds == 1 ? "" : "s");
	fprintf(out,
		"<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
		"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
		"<title>weft: measured</title>\n<style>\n%s</style>\n</head>\n<body>\n",
		style);
	put_paragraph(out, "h1", "weft, measured");
	put_paragraph(out, "p", line);
	if (p->has[THREADS])
		put_grid(
			&p->threads, out,
			"One program of plain pthreads, natively and under weft run, and the same with "
			"the functions of libweft, which it is linked with. NPTL is the C library's own "
			"way, a kernel thread for each.");
	if (p->has[MODELS])
		put_grid(
			&p->threading, out,
			"The same program with a kernel thread for each thread (1:1), with one for all "
			"(1:N), and with one per worker (M:N).");
	if (p->has[RING])
		put_grid(
			&p->ring, out,
			"A token goes round among 503 threads of an unmodified interpreter; its start is "
			"in the time.");
	if (p->has[IO_MODELS])
		put_models(&p->models, out);
	put_paragraph(
		out, "p",
		"Made by weft bench report. weft bench threads, models, ring and io-models make "
		"each part by itself; --json has the figures of every round.");
	fputs("</body>\n</html>\n", out);
}

static bool parse_parts(struct page *p, const char *list)
{
	memset(p->has, 0, sizeof(p->has));
	for (;;) {
		size_t len = strcspn(list, ",");
		int i = 0;

		while (i < NR_PARTS &&
		       (strncmp(part_names[i], list, len) != 0 || part_names[i][len] != '\0'))
			i++;
		if (i == NR_PARTS)
			return false;
		p->has[i] = true;
		if (!list[len])
			return true;
		list += len + 1;
	}
}

/* Returns 0, or the exit code. */
static int parse_options(struct page *p, int argc, char **argv)
{
	static const struct option options[] = {
		{ "output", required_argument, NULL, 'o' },
		{ "rounds", required_argument, NULL, 'r' },
		{ "only", required_argument, NULL, 'y' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	int c;

	optind = 0;
	opterr = 0;
	while ((c = getopt_long(argc, argv, "+:o:", options, NULL)) != -1) {
		switch (c) {
		case 'o':
			p->file = optarg;
			if (*optarg)
				break;
			wf_cmd_error("bench: -o takes the name of a file, not ''");
			return WF_EXIT_REFUSED;
		case 'r':
			if (wf_numbers_parse(optarg, 1, WF_GRID_ROUNDS_MAX, &p->nr_rounds))
				break;
			wf_cmd_error("bench: --rounds takes a number from 1 to 100, not '%s'",
				     optarg);
			return WF_EXIT_REFUSED;
		case 'y':
			if (parse_parts(p, optarg))
				break;
			wf_cmd_error(
				"bench: --only takes names of threads, models, ring, io-models, "
				"not '%s'",
				optarg);
			return WF_EXIT_REFUSED;
		case 'h':
			p->is_help = true;
			return 0;
		default:
			return wf_cmd_bad_option(&wf_bench_cmd, c, argv);
		}
	}
	if (optind < argc) {
		wf_cmd_error("bench: what is '%s'? see 'weft help bench'", argv[optind]);
		return WF_EXIT_REFUSED;
	}
	return 0;
}

static bool measure(struct page *p)
{
	if (!wf_bench_threads_grid(&p->threads) || !wf_bench_threading_grid(&p->threading) ||
	    !wf_bench_ring_grid(&p->ring))
		return false;
	wf_numbers_machine(p->machine, sizeof(p->machine));
	p->has[RING] = p->has[RING] && wf_bench_ring_choose(&p->ring);
	p->threads.nr_rounds = p->threading.nr_rounds = p->ring.nr_rounds = p->nr_rounds;
	wf_models_init(&p->models);
	p->models.nr_rounds = p->nr_rounds;
	return (!p->has[THREADS] || wf_grid_measure(&p->threads)) &&
	       (!p->has[MODELS] || wf_grid_measure(&p->threading)) &&
	       (!p->has[RING] || wf_grid_measure(&p->ring)) &&
	       (!p->has[IO_MODELS] || wf_models_measure(&p->models));
}

int wf_bench_report_main(int argc, char **argv)
{
	static struct page p = { .file = "report.html",
				 .nr_rounds = 3,
				 .has = { true, true, true, true } };
	int ret = parse_options(&p, argc, argv);
	bool is_good;
	FILE *out;

	if (ret || p.is_help) {
		if (p.is_help)
			wf_bench_help();
		return ret;
	}
	/* Opened before minutes of measuring, written after them; "a" keeps what is there until then. */
	out = fopen(p.file, "ae");
	if (!out) {
		wf_cmd_error("bench: cannot write %s: %s", p.file, strerror(errno));
		return WF_EXIT_REFUSED;
	}
	wf_bench_prepare();
	is_good = measure(&p);
	if (is_good) {
		is_good = ftruncate(fileno(out), 0) == 0 || errno == EINVAL;
		put_page(&p, out);
		is_good = !ferror(out) && is_good;
		is_good = fclose(out) == 0 && is_good;
		if (is_good)
			printf("wrote %s\n", p.file);
		else
			wf_cmd_error("bench: cannot write %s: %s", p.file, strerror(errno));
	} else {
		(void)fclose(out);
	}
	wf_grid_done(&p.threads);
	wf_grid_done(&p.threading);
	wf_grid_done(&p.ring);
	wf_models_done(&p.models);
	return is_good ? 0 : WF_EXIT_REFUSED;
}
