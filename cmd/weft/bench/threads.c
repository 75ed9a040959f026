// SPDX-License-Identifier: Apache-2.0
/* `weft bench threads`: what threads do, natively and under weft. Called by: bench.c. */
#include "bench/bench.h"
#include "bench/grid.h"
#include "cmd.h"

#define HELPER "bench-threads"

bool wf_bench_threads_grid(struct wf_grid *out)
{
	static const struct wf_grid_side sides[] = {
		{ "native", "NPTL", { NULL } },
		{ "weft", "weft", { "--model", "M:N" } },
	};
	static char program[PATH_MAX];
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
				 .title = "Threads, NPTL and weft",
				 .rows = rows,
				 .nr_rows = sizeof(rows) / sizeof(rows[0]),
				 .sides = sides,
				 .nr_sides = 2,
				 .nr_rounds = 3 };
	return wf_grid_find(HELPER, program);
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
