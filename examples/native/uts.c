// SPDX-License-Identifier: Apache-2.0
// Unbalanced tree search: count the nodes of a tree whose shape shows only as one walks it, a task for each child. Nobody could
// divide it beforehand. A node's hash says whether it has children; the root has many. After Olivier et al., "UTS: An Unbalanced
// Tree Search Benchmark", LCPC 2006 (binomial trees), with a cheaper hash than theirs.
//
// Usage: uts [children of the root]
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <weft/weft.h>

#define BELOW 8
#define CHANCE                                                                                     \
	31 /* of 256 nodes so many have BELOW children: 0.97 children on average, so every tree ends */

struct node {
	uint64_t hash;
	long nr; /* out: nodes from here down */
};

/* Finalizer of splitmix64. */
static uint64_t child(uint64_t hash, uint64_t i)
{
	hash += (i + 1) * 0x9e3779b97f4a7c15;
	hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9;
	hash = (hash ^ (hash >> 27)) * 0x94d049bb133111eb;
	return hash ^ (hash >> 31);
}

static void count(void *arg)
{
	struct node *n = arg, below[BELOW];
	weft_task t[BELOW];

	n->nr = 1;
	if ((n->hash & 255) >= CHANCE)
		return;
	for (unsigned i = 0; i < BELOW; i++) {
		below[i].hash = child(n->hash, i);
		weft_task_fork(&t[i], count, &below[i]);
	}
	for (unsigned i = BELOW; i-- > 0;) {
		weft_task_join(&t[i]);
		n->nr += below[i].nr;
	}
}

static void count_range(size_t begin, size_t end, void *arg)
{
	struct node *all = arg;

	for (size_t i = begin; i < end; i++)
		count(&all[i]);
}

int main(int argc, char **argv)
{
	long children = argc > 1 ? atol(argv[1]) : 20000, nr = 1;
	struct node *all = children > 0 ? calloc((size_t)children, sizeof(*all)) : NULL;
	weft_time began = weft_now();

	if (!all)
		return 1;
	for (long i = 0; i < children; i++)
		all[i].hash = child(0, (uint64_t)i);
	weft_task_for(0, (size_t)children, 1, count_range, all);
	for (long i = 0; i < children; i++)
		nr += all[i].nr;
	printf("%ld nodes in %.1f ms\n", nr, (double)(weft_now() - began) / WEFT_MS);
	free(all);
	return 0;
}
