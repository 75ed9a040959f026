// SPDX-License-Identifier: Apache-2.0
/*
 * The thread-ring of the language shootout: a token goes round among nr threads, each of which waits on its own
 * semaphore. Deep, each waits below 100 frames of 1 KiB: what a switch costs must not depend on how deep a stack is.
 *
 * The clock starts when all wait at their depth, and stops before the first thread leaves.
 */
#include <stdatomic.h>
#include <stdlib.h>

#include "threads.h"
#include "token.h"

#define BATCH 100 /* hops; a look at the clock is as long as one */
#define NR_ROUNDS 200
#define FRAMES 100
#define STACK_BYTES (256u << 10)

struct place {
	struct token token;
	struct place *next;
};

static atomic_long left, nr_ready;
static struct histogram all;
static long nr_places;
static int64_t ended, last_batch;
static bool is_deep;

static void hand_on(struct place *p)
{
	atomic_fetch_add(&nr_ready, 1);
	for (;;) {
		long l;

		token_take(&p->token);
		l = atomic_fetch_sub_explicit(&left, 1, memory_order_relaxed);
		/* The token is in one hand: nobody else writes here. */
		if (l % BATCH == 0 && l > nr_places) {
			int64_t now = bench_now_ns();

			if (last_batch)
				histogram_add(&all, (now - last_batch) / BATCH);
			last_batch = now;
		}
		if (l == nr_places)
			ended = bench_now_ns();
		token_give(&p->next->token);
		if (l <= nr_places)
			return;
	}
}

__attribute__((noinline)) static int dive(struct place *p, int depth)
{
	volatile char frame[1024 - 64];

	frame[0] = (char)depth;
	if (depth <= 1)
		hand_on(p);
	else
		dive(p, depth - 1);
	return frame[0];
}

static face_ret body(void *arg)
{
	if (is_deep)
		(void)dive(arg, FRAMES);
	else
		hand_on(arg);
	return 0;
}

static void go_round(long nr)
{
	struct place *places = calloc((size_t)nr, sizeof(*places));
	struct face_thread *threads = calloc((size_t)nr, sizeof(*threads));
	const long hops = NR_ROUNDS * nr;
	int64_t began;
	double cpu;

	if (!places || !threads)
		bench_cannot("have memory", 12);
	nr_places = nr;
	atomic_store(&left, hops);
	for (long i = 0; i < nr; i++) {
		token_init(&places[i].token, false);
		places[i].next = &places[(i + 1) % nr];
		threads[i] = bench_thread(body, &places[i], STACK_BYTES);
	}
	while (atomic_load(&nr_ready) < nr)
		face_yield();
	cpu = bench_cpu_s();
	began = bench_now_ns();
	token_give(&places[0].token);
	for (long i = 0; i < nr; i++)
		bench_join(threads[i]);
	bench_print(&all, (double)(ended - began) / (double)(hops - nr), bench_cpu_s() - cpu, 1);
	free(places);
	free(threads);
}

void bench_ring(long nr)
{
	go_round(nr);
}

void bench_ring_deep(long nr)
{
	is_deep = true;
	go_round(nr);
}
