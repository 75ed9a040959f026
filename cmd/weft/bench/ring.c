// SPDX-License-Identifier: Apache-2.0
/*
 * `weft bench ring`: the thread-ring of the language shootout, by interpreters: a token goes round among 503 threads until
 * it has made so many hops. The interpreter is an unmodified program; its start is in the time.
 *
 * Called by: bench.c.
 */
#include "bench/bench.h"
#include "bench/grid.h"

#include <stdio.h>
#include <string.h>

#include "cmd.h"
#include "program.h"
#include "svg.h"

#define HOPS "50000"
#define NR_ROWS 2

static char scripts[NR_ROWS][PATH_MAX];

static const struct wf_grid_row rows[NR_ROWS] = {
	{ "ruby",
	  "ruby, 503 threads, " HOPS " hops",
	  "ms",
	  { "ruby", scripts[0], HOPS },
	  false,
	  true },
	{ "python",
	  "python, 503 threads, " HOPS " hops",
	  "ms",
	  { "python3", scripts[1], HOPS },
	  false,
	  true },
};

/* Takes --ruby and --python out of argv. Returns the new argc. */
static int take_interpreters(struct wf_grid *g, int argc, char **argv)
{
	int kept = 0;

	for (int i = 0; i < argc; i++) {
		int row = 0;

		while (row < NR_ROWS &&
		       (strncmp(argv[i], "--", 2) != 0 || strcmp(argv[i] + 2, rows[row].name) != 0))
			row++;
		if (row < NR_ROWS)
			g->is_asked[row] = true;
		else
			argv[kept++] = argv[i];
	}
	argv[kept] = NULL;
	return kept;
}

bool wf_bench_ring_choose(struct wf_grid *g)
{
	bool is_any = false;

	for (int row = 0; row < NR_ROWS; row++) {
		char path[PATH_MAX];

		g->is_asked[row] = wf_program_find(rows[row].command[0], path) == 0;
		is_any |= g->is_asked[row];
	}
	return is_any;
}

/* Every row that the caller asked for must be there. Returns 0, or the exit code. */
static int check_rows(struct wf_grid *g)
{
	char path[PATH_MAX];
	bool is_asked = false;

	for (int row = 0; row < NR_ROWS; row++) {
		is_asked |= g->is_asked[row];
		if (g->is_asked[row] && wf_program_find(rows[row].command[0], path) < 0) {
			wf_cmd_error("bench: %s is not installed", rows[row].command[0]);
			return WF_EXIT_REFUSED;
		}
	}
	if (is_asked || wf_bench_ring_choose(g))
		return 0;
	wf_cmd_error("bench: neither ruby nor python3 is installed");
	return WF_EXIT_REFUSED;
}

bool wf_bench_ring_grid(struct wf_grid *out)
{
	static const struct wf_grid_side sides[] = {
		{ "native", "NPTL", WF_SVG_COLOUR, { NULL }, NULL },
		{ "weft", "weft run", WF_SVG_COLOUR_WEFT, { "--model", "M:N" }, NULL },
	};

	*out = (struct wf_grid){ .benchmark = "ring",
				 .title = "Thread-ring by interpreters",
				 .rows = rows,
				 .nr_rows = NR_ROWS,
				 .sides = sides,
				 .nr_sides = 2,
				 .nr_rounds = 3 };
	return wf_grid_find("ring.rb", scripts[0]) && wf_grid_find("ring.py", scripts[1]);
}

int wf_bench_ring_main(int argc, char **argv)
{
	struct wf_grid g;
	bool is_done = false;
	int ret;

	if (!wf_bench_ring_grid(&g))
		return WF_EXIT_REFUSED;
	argc = take_interpreters(&g, argc, argv);
	ret = wf_grid_parse(&g, argc, argv, &is_done);
	if (!ret && !is_done)
		ret = check_rows(&g);
	return ret || is_done ? ret : wf_grid_run(&g);
}
