// SPDX-License-Identifier: Apache-2.0
/* The benchmarks that bench.c dispatches to. argv[0] is the benchmark's name; each returns the exit code. */
#ifndef WF_BENCH_H
#define WF_BENCH_H

void wf_bench_help(void);

int wf_bench_io_models_main(int argc, char **argv); /* io_models.c */
int wf_bench_threads_main(int argc, char **argv);   /* threads.c */
int wf_bench_threading_main(int argc, char **argv); /* threading.c */
int wf_bench_ring_main(int argc, char **argv);      /* ring.c */

#endif
