// SPDX-License-Identifier: Apache-2.0
/*
 * The programs of `weft bench threads` and `weft bench models`: each does one thing with threads and says how long it took.
 * bench-threads is one of plain pthreads, which knows nothing of weft; bench-threads-native is linked with libweft. All that
 * they differ in is face.h.
 *
 * Output: one line `result mean=... p50=... p99=... max=... cpu=...`, in the unit of the workload, cpu in seconds of the
 * measured part; and where the workload has a distribution to show, one line `distribution NS:SHARE ...`, the share of
 * all that took no longer. A workload that the system does not allow prints `cannot REASON`.
 *
 * main.c has the table of workloads; each of the other files is one idea.
 */
#ifndef BENCH_THREADS_H
#define BENCH_THREADS_H

#include <stddef.h>
#include <stdint.h>

#include "face.h"
#include "histogram.h"

/* nr: how many, as the comment says; else operations. */
void bench_create(long nr);      /* create.c: threads, one after the other */
void bench_create_many(long nr); /* create.c: threads at once */
void bench_yield(long nr);       /* yield.c */
void bench_pingpong_sem(long nr);
void bench_pingpong_cond(long nr); /* pingpong.c */
void bench_ring(long nr);          /* ring.c: nr threads */
void bench_ring_deep(long nr);
void bench_mutex(long nr);    /* mutex.c: nr threads */
void bench_sleepers(long nr); /* sleepers.c */
void bench_memory(long nr);   /* memory.c */
void bench_hogs(long nr);     /* hogs.c: nr threads that compute beside one that sleeps */
void bench_compute(long nr);  /* models.c: nr threads that compute */
void bench_wait(long nr);     /* models.c: nr threads that wait */
void bench_mixed(long nr);    /* models.c: both, by turns */

/* --- clock.c --- */

int64_t bench_now_ns(void);
double bench_cpu_s(void);
/* Keeps a processor busy for so many rounds of a loop; bench_rounds_of() tells how many take ns. */
void bench_spin(uint64_t rounds);
uint64_t bench_rounds_of(int64_t ns);

/* Samples in nanoseconds; `per` of the results' units in each: 1000 for microseconds. */
void bench_print(const struct histogram *h, double mean_ns, double cpu_s, double per);
void bench_print_one(double value, double cpu_s);
void bench_print_distribution(const struct histogram *h);
/* Ends the program. */
_Noreturn void bench_cannot(const char *what, int error);

/* A thread, or bench_cannot(). bytes: of its stack; 0: as it comes. */
struct face_thread bench_thread(face_ret (*fn)(void *), void *arg, size_t stack_bytes);
void bench_join(struct face_thread thread);

#endif
