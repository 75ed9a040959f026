// SPDX-License-Identifier: Apache-2.0
/* `weft bench threads`: what threads do, natively, under weft, and on libweft's own functions. Called by: bench.c. */
#include "bench/bench.h"
#include "bench/grid.h"
#include "cmd.h"
#include "svg.h"

bool wf_bench_threads_grid(struct wf_grid *out)
{
	static char program[PATH_MAX], linked[PATH_MAX];
	static const struct wf_grid_side sides[] = {
		{ "native", "NPTL", WF_SVG_COLOUR, { NULL }, NULL },
		{ "weft", "weft run", WF_SVG_COLOUR_WEFT, { "--model", "M:N" }, NULL },
		{ "libweft", "libweft", WF_SVG_COLOUR_THIRD, { NULL }, linked },
	};
	static struct wf_grid_row rows[] = {
		{ "create", "create, run, destroy", "ns", { program, "create" } },
		{ "create-many", "10,000 threads at once, each", "ns", { program, "create-many" } },
		{ "yield", "yield, one CPU", "ns", { program, "yield/1" } },
		{ "pingpong-sem-1",
		  "semaphore round trip, one CPU",
		  "ns",
		  { program, "pingpong-sem/1" } },
		{ "pingpong-sem", "semaphore round trip", "ns", { program, "pingpong-sem" } },
		{ "pingpong-cond", "mutex+cond round trip", "ns", { program, "pingpong-cond" } },
		{ "ring-503", "ring of 503, a hop", "ns", { program, "ring", "503" } },
		{ "ring-403", "ring of 403, a hop", "ns", { program, "ring", "403" } },
		{ "ring-deep", "ring of 503, 100 KiB deep", "ns", { program, "ring-deep", "503" } },
		{ "mutex", "a mutex, 64 threads, a use", "ns", { program, "mutex" } },
		{ "sleepers-10k",
		  "10,000 threads sleep 10 times",
		  "ms",
		  { program, "sleepers", "10000" } },
		{ "sleepers-100k",
		  "100,000 threads sleep 10 times",
		  "ms",
		  { program, "sleepers", "100000" },
		  true },
		{ "memory", "memory of a waiting thread", "KiB", { program, "memory" } },
		{ "hogs", "sleeper beside 4 hogs, late by", "us", { program, "hogs" } },
	};

	*out = (struct wf_grid){ .benchmark = "threads",
				 .title = "Threads: NPTL, weft run, libweft",
				 .rows = rows,
				 .nr_rows = sizeof(rows) / sizeof(rows[0]),
				 .sides = sides,
				 .nr_sides = 3,
				 .nr_rounds = 3 };
	return wf_grid_find("bench-threads", program) &&
	       wf_grid_find("bench-threads-native", linked);
}

int wf_bench_threads_main(int argc, char **argv)
{
	struct wf_grid g;
	bool is_done = false;
	int ret;

	if (!wf_bench_threads_grid(&g))
		return WF_EXIT_REFUSED;
	ret = wf_grid_parse(&g, argc, argv, &is_done);
	return ret || is_done ? ret : wf_grid_run(&g);
}
