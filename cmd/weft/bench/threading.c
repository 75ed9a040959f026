// SPDX-License-Identifier: Apache-2.0
/*
 * `weft bench models`: one program of threads with a kernel thread for each (1:1), one for all (1:N), and some (M:N).
 * Called by: bench.c.
 */
#include "bench/bench.h"
#include "bench/grid.h"
#include "cmd.h"
#include "svg.h"

#define HELPER "bench-threads"

bool wf_bench_threading_grid(struct wf_grid *out)
{
	static const struct wf_grid_side sides[] = {
		{ "1:1", "1:1, NPTL", WF_SVG_COLOUR, { NULL }, NULL },
		{ "1:N", "1:N", WF_SVG_COLOUR_THIRD, { "--model", "1:N" }, NULL },
		{ "M:N", "M:N, weft", WF_SVG_COLOUR_WEFT, { "--model", "M:N" }, NULL },
	};
	static char program[PATH_MAX];
	static struct wf_grid_row rows[] = {
		{ "compute", "8 threads compute", "ms", { program, "compute", "8" } },
		{ "wait", "1,000 pairs wait 20 times", "ms", { program, "wait", "1000" } },
		{ "mixed", "100 pairs do both", "ms", { program, "mixed", "100" } },
		{ "create", "create, run, destroy", "ns", { program, "create" } },
		{ "pingpong", "semaphore round trip", "ns", { program, "pingpong-sem" } },
		{ "memory", "memory of a waiting thread", "KiB", { program, "memory" } },
	};

	*out = (struct wf_grid){ .benchmark = "models",
				 .title = "Threading models",
				 .rows = rows,
				 .nr_rows = sizeof(rows) / sizeof(rows[0]),
				 .sides = sides,
				 .nr_sides = 3,
				 .nr_rounds = 3 };

	return wf_grid_find(HELPER, program);
}

int wf_bench_threading_main(int argc, char **argv)
{
	struct wf_grid g;
	bool is_done = false;
	int ret;

	if (!wf_bench_threading_grid(&g))
		return WF_EXIT_REFUSED;
	ret = wf_grid_parse(&g, argc, argv, &is_done);
	return ret || is_done ? ret : wf_grid_run(&g);
}
