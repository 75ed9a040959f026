// SPDX-License-Identifier: Apache-2.0
/* Trees of calls: with libweft of tasks, with the others of their threads. */
#include "workloads.h"

#include "runtime.h"

#if defined(PEER_MASSIVETHREADS) || defined(PEER_STATE_THREADS)
#define DONE NULL
#else
#define DONE
#endif

#define NR_CALLS 100000

static call_body nothing(void *arg)
{
	(void)arg;
	return DONE;
}

double fork_join(void)
{
	const double began = now_ns();

	for (int i = 0; i < NR_CALLS; i++) {
		call c;

		fork_call(&c, nothing, NULL);
		join_call(&c);
	}
	return (now_ns() - began) / NR_CALLS;
}

/* --- fib --- */

struct fib {
	int n;
	long result;
};

static call_body call_fib(void *arg)
{
	struct fib *f = arg, a = { f->n - 1, 0 }, b = { f->n - 2, 0 };
	call c;

	f->result = f->n;
	if (f->n < 2)
		return DONE;
	fork_call(&c, call_fib, &a);
	(void)call_fib(&b);
	join_call(&c);
	f->result = a.result + b.result;
	return DONE;
}

double fib(void)
{
	struct fib f = { FIB, 0 };
	const double began = now_ns();

	(void)call_fib(&f);
	if (f.result != FIB_RESULT)
		abort();
	return (now_ns() - began) / FIB_FORKS;
}

/* --- skynet --- */

struct node {
	long first, nr, sum;
};

static call_body call_node(void *arg)
{
	struct node *n = arg, below[10];
	call c[10];

	n->sum = n->first;
	if (n->nr == 1)
		return DONE;
	for (int i = 0; i < 10; i++) {
		below[i] = (struct node){ n->first + i * (n->nr / 10), n->nr / 10, 0 };
		fork_call(&c[i], call_node, &below[i]);
	}
	n->sum = 0;
	for (int i = 10; i-- > 0;) {
		join_call(&c[i]);
		n->sum += below[i].sum;
	}
	return DONE;
}

double skynet(void)
{
	struct node root = { 0, SKYNET, 0 };
	const double began = now_ns();

	(void)call_node(&root);
	if (root.sum != SKYNET_RESULT)
		abort();
	return (now_ns() - began) / 1e6;
}

/* --- queens --- */

/* A bit for each column that is taken, and for each that the two kinds of diagonals take in this row. */
struct board {
	int row;
	unsigned int columns, rising, falling;
	long nr_solutions;
};

static call_body call_board(void *arg)
{
	struct board *b = arg, below[QUEENS];
	call c[QUEENS];
	int nr = 0;

	b->nr_solutions = b->row == QUEENS;
	if (b->row == QUEENS)
		return DONE;
	for (int i = 0; i < QUEENS; i++) {
		unsigned int bit = 1u << i;

		if ((b->columns | b->rising | b->falling) & bit)
			continue;
		below[nr] = (struct board){ b->row + 1, b->columns | bit, (b->rising | bit) << 1,
					    (b->falling | bit) >> 1, 0 };
		fork_call(&c[nr], call_board, &below[nr]);
		nr++;
	}
	while (nr-- > 0) {
		join_call(&c[nr]);
		b->nr_solutions += below[nr].nr_solutions;
	}
	return DONE;
}

double queens(void)
{
	struct board b = { 0 };
	const double began = now_ns();

	(void)call_board(&b);
	if (b.nr_solutions != QUEENS_RESULT)
		abort();
	return (now_ns() - began) / 1e6;
}
