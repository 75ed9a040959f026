// SPDX-License-Identifier: Apache-2.0
// A tree of tasks, ten below each, a million leaves: each returns the sum of what is below it.
//
// Usage: skynet [leaves]
#include <stdio.h>
#include <stdlib.h>
#include <weft/weft.h>

#define BELOW 10

struct node {
	long first, leaves, sum;
};

static void add_up(void *arg)
{
	struct node *n = arg, below[BELOW];
	weft_task t[BELOW];

	n->sum = n->first;
	if (n->leaves < BELOW)
		return;
	n->sum = 0;
	for (int i = 0; i < BELOW; i++) {
		below[i] = (struct node){ n->first + i * (n->leaves / BELOW), n->leaves / BELOW,
					  0 };
		weft_task_fork(&t[i], add_up, &below[i]);
	}
	for (int i = BELOW; i-- > 0;) {
		weft_task_join(&t[i]);
		n->sum += below[i].sum;
	}
}

int main(int argc, char **argv)
{
	struct node root = { 0, argc > 1 ? atol(argv[1]) : 1000000, 0 };
	weft_time began = weft_now();

	add_up(&root);
	printf("%ld in %.1f ms\n", root.sum, (double)(weft_now() - began) / WEFT_MS);
	return 0;
}
