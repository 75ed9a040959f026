// SPDX-License-Identifier: Apache-2.0
/*
 * libweft in the place of one runtime among several: the workloads that their harnesses have in common, each written with what
 * libweft has for it. The arguments and the output are those of the others, so that one table shows all.
 *
 * peer.c has the table of workloads, and all that is common; each of the other files is one kind.
 */
#ifndef BENCH_PEER_H
#define BENCH_PEER_H

#include <weft/weft.h>

#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>

/* Counted from 1, behind the number of workers; or its usual value. */
long peer_arg(int i, long usual);
/* One line: workload row value unit. */
void peer_row(const char *row, double value, const char *unit);
/* The least of three runs of measure(arg). */
double peer_best(double (*measure)(void *arg), void *arg);
double peer_cpu_s(void);
/* Ends the program: what a workload finds was not what it has to be. */
_Noreturn void peer_is_broken(const char *what, double value);

/* stack_bytes 0: as it comes. NULL: there is no room for another one. */
weft_thread *peer_try_spawn(weft_fn *fn, void *arg, size_t stack_bytes);
weft_thread *peer_spawn(weft_fn *fn, void *arg, size_t stack_bytes);
void peer_join(weft_thread *t);
void peer_sleep(weft_time ns);

/* One thread hands things to another by one of these. */
enum peer_means {
	PEER_COND, /* a mutex and a condition */
	PEER_SEM,  /* libc's semaphore */
	PEER_CHAN, /* a channel of tokens */
	PEER_EVENT,
	PEER_NR_MEANS
};
extern const char *const peer_means_name[PEER_NR_MEANS]; /* as the rows are called */

struct peer_token {
	enum peer_means by;
	int nr;
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	sem_t sem;
	weft_chan *chan;
	weft_event event;
};

void peer_token_init(struct peer_token *t, enum peer_means by);
void peer_token_done(struct peer_token *t);
void peer_token_give(struct peer_token *t);
void peer_token_take(struct peer_token *t);

/* peer_switch.c */
void peer_yield(void);
void peer_pingpong(void);
void peer_ring(void);
void peer_mutex(void);
/* peer_crowd.c */
void peer_spawn_join(void);
void peer_spawn_batch(void);
void peer_memory(void);
void peer_sleepers(void);
void peer_skynet(void);
void peer_skynet_threads(void);
/* peer_fair.c */
void peer_fairness(void);
/* peer_own.c */
void peer_own(void);

#endif
