// SPDX-License-Identifier: Apache-2.0
/*
 * Usage: bench-peer WORKLOAD WORKERS [ARG...]      prints lines: workload row value unit
 *
 * Rows by what a program would use: `cv` a mutex and a condition, `sem` libc's semaphore, `chan` a channel of tokens, `notify` an
 * event. `skynet` is one of tasks; `skynet_threads` is the same of threads, as it is for runtimes that have nothing else.
 * `own` has what the others have nothing for.
 */
#include "peer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define RUNS 3

static int nr_args;
static char **args;

long peer_arg(int i, long usual)
{
	return nr_args > 2 + i ? atol(args[2 + i]) : usual;
}

void peer_row(const char *row, double value, const char *unit)
{
	printf("%s %s %.3f %s\n", args[1], row, value, unit);
	fflush(stdout);
}

double peer_best(double (*measure)(void *arg), void *arg)
{
	double least = measure(arg);

	for (int i = 1; i < RUNS; i++) {
		const double took = measure(arg);

		least = took < least ? took : least;
	}
	return least;
}

double peer_cpu_s(void)
{
	struct rusage used;

	getrusage(RUSAGE_SELF, &used);
	return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
	       (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

void peer_is_broken(const char *what, double value)
{
	peer_row("BROKEN", value, what);
	_exit(4);
}

/* --- threads --- */

weft_thread *peer_try_spawn(weft_fn *fn, void *arg, size_t stack_bytes)
{
	const struct weft_thread_opts opts = { .size = sizeof(opts), .stack_bytes = stack_bytes };
	weft_thread *t;

	return weft_thread_spawn(fn, arg, stack_bytes ? &opts : NULL, &t) == 0 ? t : NULL;
}

weft_thread *peer_spawn(weft_fn *fn, void *arg, size_t stack_bytes)
{
	weft_thread *t = peer_try_spawn(fn, arg, stack_bytes);

	if (!t) {
		peer_row("-", 0, "spawn-failed");
		_exit(3);
	}
	return t;
}

void peer_join(weft_thread *t)
{
	const int error = weft_thread_join(t, NULL, WEFT_NEVER);

	if (error)
		peer_is_broken("join", error);
}

void peer_sleep(weft_time ns)
{
	(void)weft_sleep_until(weft_now() + ns);
}

/* --- tokens --- */

const char *const peer_means_name[PEER_NR_MEANS] = { "cv", "sem", "chan", "notify" };

void peer_token_init(struct peer_token *t, enum peer_means by)
{
	t->by = by;
	t->nr = 0;
	pthread_mutex_init(&t->mutex, NULL);
	pthread_cond_init(&t->cond, NULL);
	sem_init(&t->sem, 0, 0);
	t->chan = by == PEER_CHAN ? weft_chan_new(0, 1, "token") : NULL;
	t->event = (weft_event){ { 0 } };
}

void peer_token_done(struct peer_token *t)
{
	weft_chan_free(t->chan);
	sem_destroy(&t->sem);
	pthread_cond_destroy(&t->cond);
	pthread_mutex_destroy(&t->mutex);
}

void peer_token_give(struct peer_token *t)
{
	switch (t->by) {
	case PEER_COND:
		pthread_mutex_lock(&t->mutex);
		t->nr++;
		pthread_cond_signal(&t->cond);
		pthread_mutex_unlock(&t->mutex);
		break;
	case PEER_SEM:
		(void)sem_post(&t->sem);
		break;
	case PEER_CHAN:
		(void)weft_chan_give(t->chan, WEFT_NEVER);
		break;
	default:
		weft_event_set(&t->event);
	}
}

void peer_token_take(struct peer_token *t)
{
	switch (t->by) {
	case PEER_COND:
		pthread_mutex_lock(&t->mutex);
		while (!t->nr)
			pthread_cond_wait(&t->cond, &t->mutex);
		t->nr--;
		pthread_mutex_unlock(&t->mutex);
		break;
	case PEER_SEM:
		while (sem_wait(&t->sem))
			;
		break;
	case PEER_CHAN:
		(void)weft_chan_take(t->chan, WEFT_NEVER);
		break;
	default:
		(void)weft_event_wait(&t->event, WEFT_NEVER);
		weft_event_clear(&t->event);
	}
}

/* --- the table --- */

static const struct workload {
	const char *name;
	void (*run)(void);
} workloads[] = {
	{ "spawn_join", peer_spawn_join },
	{ "spawn_batch", peer_spawn_batch },
	{ "yield", peer_yield },
	{ "pingpong", peer_pingpong },
	{ "ring", peer_ring },
	{ "mutex", peer_mutex },
	{ "memory", peer_memory },
	{ "sleep", peer_sleepers },
	{ "skynet", peer_skynet },
	{ "skynet_threads", peer_skynet_threads },
	{ "fairness", peer_fairness },
	{ "own", peer_own },
};
#define NR_WORKLOADS (sizeof(workloads) / sizeof(workloads[0]))

/* The runtime has read its options when main() begins: the program is executed again with another number of workers. */
static void set_workers(const char *nr)
{
	const char *set = getenv("WEFT_WORKERS");

	if (set && strcmp(set, nr) == 0)
		return;
	setenv("WEFT_WORKERS", nr, 1);
	execv("/proc/self/exe", args);
	perror("/proc/self/exe");
	exit(2);
}

static int run(void *arg)
{
	const struct workload *w = arg;

	w->run();
	return 0;
}

int main(int argc, char **argv)
{
	nr_args = argc;
	args = argv;
	if (argc < 3) {
		fprintf(stderr, "Usage: %s WORKLOAD WORKERS [ARG...]\n", argv[0]);
		return 2;
	}
	for (size_t i = 0; i < NR_WORKLOADS; i++) {
		if (strcmp(workloads[i].name, argv[1]) != 0)
			continue;
		set_workers(argv[2]);
		/* In a thread, not in main: so do the others. */
		peer_join(peer_spawn(run, (void *)&workloads[i], 8ul << 20));
		return 0;
	}
	fprintf(stderr, "unsupported workload %s\n", argv[1]);
	return 2;
}
