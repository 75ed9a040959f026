// SPDX-License-Identifier: Apache-2.0
// A quicksort whose halves are tasks: the smaller one is offered, the larger one goes on.
//
// Usage: sort [numbers]
#include <stdio.h>
#include <stdlib.h>
#include <weft/weft.h>

#define SMALL 32 // fewer are sorted by insertion

struct part {
	unsigned *first;
	size_t nr;
};

static void insert(unsigned *a, size_t nr)
{
	for (size_t i = 1; i < nr; i++) {
		unsigned x = a[i];
		size_t at = i;

		for (; at && a[at - 1] > x; at--)
			a[at] = a[at - 1];
		a[at] = x;
	}
}

static unsigned middle(unsigned a, unsigned b, unsigned c)
{
	return a < b ? (b < c ? b : a < c ? c : a) : (a < c ? a : b < c ? c : b);
}

static void quicksort(void *arg)
{
	const struct part *p = arg;
	unsigned *a = p->first, pivot;
	size_t low = 0, high = p->nr - 1;
	struct part left, right;
	weft_task t;

	if (p->nr <= SMALL) {
		insert(a, p->nr);
		return;
	}
	pivot = middle(a[0], a[p->nr / 2], a[high]);
	for (;; low++, high--) {
		while (a[low] < pivot)
			low++;
		while (a[high] > pivot)
			high--;
		if (low >= high)
			break;
		unsigned x = a[low];

		a[low] = a[high];
		a[high] = x;
	}
	left = (struct part){ a, high + 1 };
	right = (struct part){ a + high + 1, p->nr - high - 1 };
	weft_task_fork(&t, quicksort, left.nr < right.nr ? &left : &right);
	quicksort(left.nr < right.nr ? &right : &left);
	weft_task_join(&t);
}

int main(int argc, char **argv)
{
	size_t nr = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000000;
	struct part all = { malloc((nr + 1) * sizeof(*all.first)), nr };
	unsigned x = 1;
	weft_time began;

	if (!all.first || !nr)
		return 1;
	for (size_t i = 0; i < nr; i++)
		all.first[i] = x = x * 1664525 + 1013904223;
	began = weft_now();
	quicksort(&all);
	printf("%zu numbers in %.1f ms\n", nr, (double)(weft_now() - began) / WEFT_MS);
	for (size_t i = 1; i < nr; i++)
		if (all.first[i - 1] > all.first[i])
			return 1;
	free(all.first);
	return 0;
}
