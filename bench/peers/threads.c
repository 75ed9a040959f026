// SPDX-License-Identifier: Apache-2.0
/* Threads that come and go, give way, and wake each other. */
#include "workloads.h"

#include "runtime.h"

#include <stdatomic.h>

#if defined(PEER_ARGOBOTS)
#define DONE

ABT_pool pools[MAX_WORKERS];
#else
#define DONE 0
#endif

void start_runtime(int nr_workers)
{
	start(nr_workers);
}

/* --- one after the other, and in batches --- */

#define NR_SPAWNS 100000
#define BATCH 10000
#define NR_BATCHES 20

static body nothing(void *arg)
{
	(void)arg;
	return DONE;
}

double spawn_join(void)
{
	const double began = now_ns();

	for (int i = 0; i < NR_SPAWNS; i++)
		join(spawn(nothing, NULL));
	return (now_ns() - began) / NR_SPAWNS;
}

double spawn_batch(void)
{
	static thread threads[BATCH];
	const double began = now_ns();

	for (int round = 0; round < NR_BATCHES; round++) {
		for (int i = 0; i < BATCH; i++)
			threads[i] = spawn(nothing, NULL);
		for (int i = 0; i < BATCH; i++)
			join(threads[i]);
	}
	return (now_ns() - began) / BATCH / NR_BATCHES;
}

/* --- yield --- */

#define NR_YIELDS 500000

static body yields(void *arg)
{
	(void)arg;
	for (int i = 0; i < NR_YIELDS; i++)
		give_way();
	return DONE;
}

double yield(void)
{
	const double began = now_ns();
	thread a = spawn(yields, NULL), b = spawn(yields, NULL);

	join(a);
	join(b);
	return (now_ns() - began) / NR_YIELDS / 2;
}

/* --- ping-pong --- */

#define NR_TRIPS 200000

static struct token here, there;

static body serves(void *arg)
{
	(void)arg;
	for (int i = 0; i < NR_TRIPS; i++) {
		give(&there);
		take(&here);
	}
	return DONE;
}

static body answers(void *arg)
{
	(void)arg;
	for (int i = 0; i < NR_TRIPS; i++) {
		take(&there);
		give(&here);
	}
	return DONE;
}

double pingpong(void)
{
	thread a, b;
	double began;

	token_init(&here);
	token_init(&there);
	began = now_ns();
	a = spawn(serves, NULL);
	b = spawn(answers, NULL);
	join(a);
	join(b);
	return (now_ns() - began) / NR_TRIPS;
}

/* --- ring --- */

#define RING 503
#define HOPS 500000

static struct token tokens[RING];
static atomic_int nr_ready;
static long left; /* the token's owner's */
static double end;

/* The last lap ends a thread at each hop, so the clock stops before. */
static body passes_on(void *arg)
{
	struct token *mine = arg, *next = mine + 1 == tokens + RING ? tokens : mine + 1;
	long n;

	nr_ready++;
	do {
		take(mine);
		n = left--;
		if (n == RING)
			end = now_ns();
		give(next);
	} while (n > RING);
	return DONE;
}

double ring(void)
{
	static thread threads[RING];
	double began;

	left = HOPS;
	nr_ready = 0;
	for (int i = 0; i < RING; i++)
		token_init(&tokens[i]);
	for (int i = 0; i < RING; i++)
		threads[i] = spawn(passes_on, &tokens[i]);
	while (nr_ready < RING)
		give_way();
	began = now_ns();
	give(&tokens[0]);
	for (int i = 0; i < RING; i++)
		join(threads[i]);
	return (end - began) / (HOPS - RING);
}
