// SPDX-License-Identifier: Apache-2.0
/* The benchmarks that bench.c dispatches to. argv[0] is the benchmark's name; each returns the exit code. */
#ifndef WF_BENCH_H
#define WF_BENCH_H

#include <stdbool.h>

struct wf_grid;

void wf_bench_help(void);
/* Before anything is measured: signals and environment as the programs need them. */
void wf_bench_prepare(void);

/* The grids of three of them, with the options as they come. False after having said what is missing. */
bool wf_bench_threads_grid(struct wf_grid *out);
bool wf_bench_threading_grid(struct wf_grid *out);
bool wf_bench_ring_grid(struct wf_grid *out);
/* Of ring: leave out what is not installed. False, and nothing said: nothing is. */
bool wf_bench_ring_choose(struct wf_grid *g);

int wf_bench_io_models_main(int argc, char **argv); /* io_models.c */
int wf_bench_threads_main(int argc, char **argv);   /* threads.c */
int wf_bench_threading_main(int argc, char **argv); /* threading.c */
int wf_bench_ring_main(int argc, char **argv);      /* ring.c */
int wf_bench_report_main(int argc, char **argv);    /* page.c */

#endif
