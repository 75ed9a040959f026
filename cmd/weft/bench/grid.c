// SPDX-License-Identifier: Apache-2.0
/* The rounds of a grid, and the options that all grids have; see grid.h. */
#include "bench/grid.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <math.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "beside.h"
#include "bench/bench.h"
#include "cmd.h"
#include "keeper.h"
#include "library.h"
#include "numbers.h"
#include "svg.h"
#include "text.h"

#define LIMIT_MS 120000 /* no workload is as long on any machine that is of use */
#define OUTPUT_BYTES 65536
#define ARGUMENTS_MAX 16

bool wf_grid_find(const char *name, char out[PATH_MAX])
{
	/* Installed, build tree. */
	static const char *const places[] = { "../libexec/weft", "../lib/weft",
					      "../../bench/threads", "../../bench/echo" };

	if (wf_beside_find(places, sizeof(places) / sizeof(places[0]), name, X_OK, out))
		return true;
	wf_cmd_error("bench: the program %s is neither installed nor built", name);
	return false;
}

bool wf_grid_has_row(const struct wf_grid *g, int row)
{
	bool is_any = false;

	for (int i = 0; i < g->nr_rows; i++)
		is_any |= g->is_asked[i];
	return !is_any || g->is_asked[row];
}

const struct wf_grid_cell *wf_grid_at(const struct wf_grid *g, int row, int side)
{
	return &g->cells[row * g->nr_sides + side];
}

double wf_grid_value(const struct wf_grid *g, int row, int side, enum wf_grid_metric metric)
{
	const struct wf_grid_cell *cell = wf_grid_at(g, row, side);
	double max = NAN;

	if (metric != WF_GRID_MAX)
		return wf_numbers_median(cell->samples[metric], (size_t)cell->nr_samples);
	for (int i = 0; i < cell->nr_samples; i++)
		max = fmax(max, cell->samples[metric][i]);
	return max;
}

__attribute__((format(printf, 3, 4))) static void wrong(struct wf_grid_cell *cell, bool is_failure,
							const char *format, ...)
{
	char text[sizeof(cell->why_not)];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	wf_text_clean(cell->why_not, sizeof(cell->why_not), text);
	cell->is_failure |= is_failure;
}

/* "name=1.5" somewhere in a line, or NAN. */
static double number_in(const char *line, const char *name)
{
	const char *at = strstr(line, name);

	return at ? strtod(at + strlen(name), NULL) : NAN;
}

static void take_distribution(struct wf_grid_cell *cell, const char *at)
{
	char *end;

	cell->nr_points = 0;
	while (cell->nr_points < WF_GRID_POINTS_MAX) {
		double ns = strtod(at, &end), share;

		if (end == at || *end != ':')
			return;
		share = strtod(end + 1, &end);
		cell->ns[cell->nr_points] = ns;
		cell->share[cell->nr_points++] = share;
		at = end;
	}
}

/* Takes the figures from the program's output. */
static void take_output(struct wf_grid_cell *cell, const char *text)
{
	static const char *const names[WF_GRID_NR_METRICS] = { " mean=", " p50=", " p99=", " max=",
							       " cpu=" };
	const char *result = strstr(text, "result "), *at;

	if (strncmp(text, "cannot ", 7) == 0) {
		wrong(cell, false, "cannot %.*s", (int)strcspn(text + 7, "\n"), text + 7);
		return;
	}
	if (!result || isnan(number_in(result, names[WF_GRID_MEAN]))) {
		wrong(cell, true, "the program says '%.*s'", (int)strcspn(text, "\n"), text);
		return;
	}
	for (int metric = 0; metric < WF_GRID_NR_METRICS; metric++) {
		char line[256];

		snprintf(line, sizeof(line), "%.*s", (int)strcspn(result, "\n"), result);
		cell->samples[metric][cell->nr_samples] = number_in(line, names[metric]);
	}
	cell->nr_samples++;
	at = strstr(text, "\ndistribution ");
	if (at)
		take_distribution(cell, at + strlen("\ndistribution "));
}

static void take_end(struct wf_grid_cell *cell, const struct wf_grid_row *row,
		     const struct wf_keeper_report *r, const char *out, const char *err)
{
	if (r->status != 0) {
		wrong(cell, true, "%s %d%s%.*s", WIFEXITED(r->status) ? "exit status" : "signal",
		      WIFEXITED(r->status) ? WEXITSTATUS(r->status) : WTERMSIG(r->status),
		      *err ? ": " : "", (int)strcspn(err, "\n"), err);
	} else if (strncmp(err, "weft: ", 6) == 0) {
		/* Whatever weft says is that the program does not run as it should. */
		wrong(cell, true, "%.*s", (int)strcspn(err, "\n"), err);
	} else if (row->is_timed_outside) {
		for (int metric = 0; metric < WF_GRID_NR_METRICS; metric++)
			cell->samples[metric][cell->nr_samples] = NAN;
		cell->samples[WF_GRID_MEAN][cell->nr_samples] = (double)r->wall_ns / 1e6;
		cell->samples[WF_GRID_CPU][cell->nr_samples++] = (double)r->cpu_ns / 1e9;
	} else {
		take_output(cell, out);
	}
}

static void build_argv(const struct wf_grid_row *row, const struct wf_grid_side *side,
		       char *out[ARGUMENTS_MAX])
{
	int nr = 0;

	if (side->options[0]) {
		out[nr++] = (char *)"/proc/self/exe";
		out[nr++] = (char *)"run";
		for (size_t i = 0;
		     i < sizeof(side->options) / sizeof(side->options[0]) && side->options[i]; i++)
			out[nr++] = (char *)side->options[i];
		out[nr++] = (char *)"--";
	}
	for (size_t i = 0; i < sizeof(row->command) / sizeof(row->command[0]) && row->command[i];
	     i++)
		out[nr++] = (char *)(i == 0 && side->program ? side->program : row->command[i]);
	out[nr] = NULL;
}

static void read_all(int fd, char *out, size_t bytes)
{
	ssize_t n = pread(fd, out, bytes - 1, 0);

	out[n > 0 ? n : 0] = '\0';
}

/* Weft is not always installed where the dynamic loader looks: a program that is linked with it is told. */
static int start(const struct wf_grid *g, const struct wf_grid_side *side, struct wf_keeper *k,
		 char **argv, int in, int out, int err)
{
	const char *before = getenv("LD_LIBRARY_PATH");
	char *kept = before ? strdup(before) : NULL, *places = NULL;
	int ret;

	if (side->program && g->library_dir[0] &&
	    asprintf(&places, "%s%s%s", g->library_dir, kept && *kept ? ":" : "",
		     kept ? kept : "") > 0)
		(void)setenv("LD_LIBRARY_PATH", places, 1);
	ret = wf_keeper_start(k, argv, in, out, err);
	if (places && kept)
		(void)setenv("LD_LIBRARY_PATH", kept, 1);
	else if (places)
		(void)unsetenv("LD_LIBRARY_PATH");
	free(places);
	free(kept);
	return ret;
}

static void measure_cell(const struct wf_grid *g, const struct wf_grid_row *row,
			 const struct wf_grid_side *side, struct wf_grid_cell *cell)
{
	static char out_text[OUTPUT_BYTES], err_text[1024];
	struct pollfd p = { .events = POLLIN };
	struct wf_keeper_report report;
	struct wf_keeper keeper;
	char *argv[ARGUMENTS_MAX];
	int in = open("/dev/null", O_RDONLY | O_CLOEXEC);
	int out = memfd_create("stdout", MFD_CLOEXEC), err = memfd_create("stderr", MFD_CLOEXEC);

	build_argv(row, side, argv);
	if (in < 0 || out < 0 || err < 0 || start(g, side, &keeper, argv, in, out, err) < 0) {
		wrong(cell, true, "cannot be started: %s", strerror(errno));
	} else {
		p.fd = keeper.report;
		if (poll(&p, 1, LIMIT_MS) == 0) {
			wrong(cell, true, "has not ended after %d s", LIMIT_MS / 1000);
			wf_keeper_kill(&keeper);
		} else if (!wf_keeper_take(&keeper, &report)) {
			wrong(cell, true, "was lost");
		} else {
			read_all(out, out_text, sizeof(out_text));
			read_all(err, err_text, sizeof(err_text));
			take_end(cell, row, &report, out_text, err_text);
		}
	}
	for (int fd = 0; fd < 3; fd++)
		if ((int[]){ in, out, err }[fd] >= 0)
			close((int[]){ in, out, err }[fd]);
}

bool wf_grid_measure(struct wf_grid *g)
{
	char now[160], why[PATH_MAX + 200];

	g->cells = calloc((size_t)(g->nr_rows * g->nr_sides), sizeof(*g->cells));
	if (!g->cells) {
		wf_cmd_error("bench: out of memory");
		return false;
	}
	wf_numbers_machine(g->machine, sizeof(g->machine));
	strftime(g->date, sizeof(g->date), "%Y-%m-%d", localtime(&(time_t){ time(NULL) }));
	if (wf_library_find(g->library_dir, why, sizeof(why)))
		*strrchr(g->library_dir, '/') = '\0';
	else
		g->library_dir[0] = '\0';
	for (int round = 0; round < g->nr_rounds; round++) {
		for (int i = 0; i < g->nr_rows * g->nr_sides; i++) {
			const struct wf_grid_row *row = &g->rows[i / g->nr_sides];
			/* In odd rounds the last side begins. */
			int turn = i % g->nr_sides;
			int side = round % 2 ? g->nr_sides - 1 - turn : turn;
			struct wf_grid_cell *cell = &g->cells[i / g->nr_sides * g->nr_sides + side];

			if (!wf_grid_has_row(g, i / g->nr_sides) || cell->why_not[0] ||
			    (row->is_long && round < g->nr_rounds - 1))
				continue;
			snprintf(now, sizeof(now), "%s, %s", row->label, g->sides[side].label);
			wf_numbers_progress(round * g->nr_rows * g->nr_sides + i,
					    g->nr_rounds * g->nr_rows * g->nr_sides, now);
			measure_cell(g, row, &g->sides[side], cell);
		}
	}
	wf_numbers_progress_end();
	return true;
}

void wf_grid_done(struct wf_grid *g)
{
	free(g->cells);
	g->cells = NULL;
}

/* --- options --- */

static bool ask_for(struct wf_grid *g, const char *list)
{
	for (;;) {
		size_t len = strcspn(list, ",");
		int i = 0;

		while (i < g->nr_rows &&
		       (strncmp(g->rows[i].name, list, len) != 0 || g->rows[i].name[len] != '\0'))
			i++;
		if (i == g->nr_rows)
			return false;
		g->is_asked[i] = true;
		if (!list[len])
			return true;
		list += len + 1;
	}
}

static int refuse_rows(const struct wf_grid *g, const char *got)
{
	char names[1024] = "";

	for (int i = 0; i < g->nr_rows; i++) {
		strncat(names, i ? ", " : "", sizeof(names) - strlen(names) - 1);
		strncat(names, g->rows[i].name, sizeof(names) - strlen(names) - 1);
	}
	wf_cmd_error("bench: --only takes names of %s, not '%s'", names, got);
	return WF_EXIT_REFUSED;
}

int wf_grid_parse(struct wf_grid *g, int argc, char **argv, bool *out_done)
{
	static const struct option options[] = {
		{ "rounds", required_argument, NULL, 'r' },
		{ "only", required_argument, NULL, 'o' },
		{ "svg", required_argument, NULL, 'v' },
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	int c;

	optind = 0;
	opterr = 0;
	while ((c = getopt_long(argc, argv, "+:", options, NULL)) != -1) {
		switch (c) {
		case 'r':
			if (wf_numbers_parse(optarg, 1, WF_GRID_ROUNDS_MAX, &g->nr_rounds))
				break;
			wf_cmd_error("bench: --rounds takes a number from 1 to 100, not '%s'",
				     optarg);
			return WF_EXIT_REFUSED;
		case 'o':
			if (ask_for(g, optarg))
				break;
			return refuse_rows(g, optarg);
		case 'v':
			g->svg = optarg;
			if (*optarg)
				break;
			wf_cmd_error("bench: --svg takes the name of a file, not ''");
			return WF_EXIT_REFUSED;
		case 'j':
			g->is_json = true;
			break;
		case 'h':
			wf_bench_help();
			*out_done = true;
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

static bool write_picture(const struct wf_grid *g, FILE *out)
{
	bool is_good = ftruncate(fileno(out), 0) == 0 || errno == EINVAL;

	wf_svg_prolog(out);
	wf_grid_svg(g, out);
	is_good = !ferror(out) && is_good;
	is_good = fclose(out) == 0 && is_good;
	if (!is_good)
		wf_cmd_error("bench: cannot write %s: %s", g->svg, strerror(errno));
	return is_good;
}

int wf_grid_run(struct wf_grid *g)
{
	FILE *picture = NULL;
	int ret = 0;

	if (g->svg) {
		/* Opened before minutes of measuring, written after them; "a" keeps what is there until then. */
		picture = fopen(g->svg, "ae");
		if (!picture) {
			wf_cmd_error("bench: cannot write %s: %s", g->svg, strerror(errno));
			return WF_EXIT_REFUSED;
		}
	}
	wf_bench_prepare();
	if (!wf_grid_measure(g)) {
		if (picture)
			(void)fclose(picture);
		return WF_EXIT_REFUSED;
	}
	if (g->is_json)
		wf_grid_show_json(g);
	else
		wf_grid_show(g);
	for (int i = 0; i < g->nr_rows * g->nr_sides; i++)
		ret = g->cells[i].is_failure ? 1 : ret;
	if (picture && !write_picture(g, picture))
		ret = WF_EXIT_REFUSED;
	wf_grid_done(g);
	return ret;
}
