// SPDX-License-Identifier: Apache-2.0
/* Threads that give way, that wake each other in pairs and in a ring, and that share a lock. */
#include "peer.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

/* --- yield --- */

static int yields(void *arg)
{
	for (long i = *(long *)arg; i > 0; i--)
		weft_thread_yield();
	return 0;
}

static double measure_yield(void *arg)
{
	const weft_time began = weft_now();
	weft_thread *a = peer_spawn(yields, arg, 0), *b = peer_spawn(yields, arg, 0);

	peer_join(a);
	peer_join(b);
	return (double)(weft_now() - began) / (double)*(long *)arg / 2;
}

void peer_yield(void)
{
	long nr = peer_arg(1, 1000000);

	peer_row("ns", peer_best(measure_yield, &nr), "ns/switch");
}

/* --- ping-pong --- */

struct pair {
	long nr;
	enum peer_means by;
	struct peer_token here, there;
};

static int serves(void *arg)
{
	struct pair *p = arg;

	for (long i = 0; i < p->nr; i++) {
		peer_token_give(&p->there);
		peer_token_take(&p->here);
	}
	return 0;
}

static int answers(void *arg)
{
	struct pair *p = arg;

	for (long i = 0; i < p->nr; i++) {
		peer_token_take(&p->there);
		peer_token_give(&p->here);
	}
	return 0;
}

static double measure_pair(void *arg)
{
	struct pair *p = arg;
	weft_time began, took;
	weft_thread *a, *b;

	peer_token_init(&p->here, p->by);
	peer_token_init(&p->there, p->by);
	began = weft_now();
	a = peer_spawn(serves, p, 0);
	b = peer_spawn(answers, p, 0);
	peer_join(a);
	peer_join(b);
	took = weft_now() - began;
	peer_token_done(&p->here);
	peer_token_done(&p->there);
	return (double)took / (double)p->nr;
}

void peer_pingpong(void)
{
	static struct pair p;

	p.nr = peer_arg(1, 200000);
	for (int by = 0; by < PEER_NR_MEANS; by++) {
		p.by = (enum peer_means)by;
		peer_row(peer_means_name[by], peer_best(measure_pair, &p), "ns/roundtrip");
	}
}

/* --- ring --- */

#define RING 503
#define RING_STACK (256ul << 10)
#define FRAME_BYTES 1024
#define FRAMES 100 /* below the wait */

static struct ring {
	long hops;
	enum peer_means by;
	int depth;
	struct peer_token token[RING];
	atomic_long left;
	atomic_int nr_ready;
	weft_time end;
} ring;

/* The last lap ends a thread at each hop, so the clock stops before. */
static void pass_on(long i)
{
	ring.nr_ready++;
	for (;;) {
		long left;

		peer_token_take(&ring.token[i]);
		left = atomic_fetch_sub_explicit(&ring.left, 1, memory_order_relaxed);
		if (left == RING)
			ring.end = weft_now();
		peer_token_give(&ring.token[(i + 1) % RING]);
		if (left <= RING)
			return;
	}
}

static __attribute__((noinline)) int pass_on_below(long i, int depth)
{
	volatile char frame[FRAME_BYTES - 64];

	frame[0] = (char)depth;
	frame[sizeof(frame) - 1] = 1;
	if (depth > 1)
		(void)pass_on_below(i, depth - 1);
	else
		pass_on(i);
	return frame[0] + frame[sizeof(frame) - 1];
}

static int is_in_ring(void *arg)
{
	if (ring.depth)
		(void)pass_on_below((long)arg, ring.depth);
	else
		pass_on((long)arg);
	return 0;
}

static double measure_ring(void *arg)
{
	weft_thread *threads[RING];
	weft_time began;

	(void)arg;
	ring.left = ring.hops;
	ring.nr_ready = 0;
	for (long i = 0; i < RING; i++)
		peer_token_init(&ring.token[i], ring.by);
	for (long i = 0; i < RING; i++)
		threads[i] = peer_spawn(is_in_ring, (void *)i, RING_STACK);
	while (ring.nr_ready < RING)
		peer_sleep(WEFT_MS);
	began = weft_now();
	peer_token_give(&ring.token[0]);
	for (long i = 0; i < RING; i++)
		peer_join(threads[i]);
	for (long i = 0; i < RING; i++)
		peer_token_done(&ring.token[i]);
	return (double)(ring.end - began) / (double)(ring.hops - RING);
}

void peer_ring(void)
{
	ring.hops = peer_arg(1, 500000);
	for (int by = 0; by < PEER_NR_MEANS; by++) {
		const char *name = peer_means_name[by];
		double flat, deep;
		char row[32];

		ring.by = (enum peer_means)by;
		ring.depth = 0;
		flat = peer_best(measure_ring, NULL);
		peer_row(name, flat, "ns/hop");
		ring.depth = FRAMES;
		deep = peer_best(measure_ring, NULL);
		(void)snprintf(row, sizeof(row), "%s-deep%d", name, FRAMES);
		peer_row(row, deep, "ns/hop");
		(void)snprintf(row, sizeof(row), "%s-deep-ratio", name);
		peer_row(row, deep / flat, "x");
	}
}

/* --- mutex --- */

static struct {
	pthread_mutex_t mutex;
	long nr_threads, each;
	volatile long count;
} shared = { .mutex = PTHREAD_MUTEX_INITIALIZER };

static int counts(void *arg)
{
	(void)arg;
	for (long i = 0; i < shared.each; i++) {
		pthread_mutex_lock(&shared.mutex);
		shared.count = shared.count + 1;
		pthread_mutex_unlock(&shared.mutex);
	}
	return 0;
}

static double measure_mutex(void *arg)
{
	weft_thread **threads = arg;
	const weft_time began = weft_now();
	const long total = shared.each * shared.nr_threads;
	weft_time took;

	shared.count = 0;
	for (long i = 0; i < shared.nr_threads; i++)
		threads[i] = peer_spawn(counts, NULL, 0);
	for (long i = 0; i < shared.nr_threads; i++)
		peer_join(threads[i]);
	took = weft_now() - began;
	if (shared.count != total)
		peer_is_broken("count", (double)shared.count);
	return (double)took / (double)total;
}

void peer_mutex(void)
{
	weft_thread **threads;

	shared.nr_threads = peer_arg(1, 64);
	shared.each = peer_arg(2, 2000000) / shared.nr_threads;
	threads = calloc((size_t)shared.nr_threads, sizeof(threads[0]));
	if (!threads)
		abort();
	peer_row("ns", peer_best(measure_mutex, threads), "ns/op");
	free(threads);
}
