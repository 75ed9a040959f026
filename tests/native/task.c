// SPDX-License-Identifier: Apache-2.0
/* Tasks: each is called once, before its join returns, whatever the order; and what programs do with them. */
#include <weft/task.h>

#include "tap.h"
#include "tasks.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

TEST(a_task_has_been_called_once_when_it_is_joined)
{
	weft_task t;
	int n = 0;

	for (int i = 1; i <= 10000; i++) {
		weft_task_fork(&t, counts, &n);
		weft_task_join(&t);
		if (n != i) {
			CHECK_EQ(n, i);
			return;
		}
	}
}

#define NR 3000

static int done[NR];

static void sets(void *arg)
{
	++*(int *)arg;
}

static void check_all(const char *order)
{
	bool is_right = true;

	for (int i = 0; i < NR; i++)
		is_right = is_right && done[i] == 1;
	if (!CHECK(is_right))
		tap_note("%s", order);
}

/* More than fit at first. */
static weft_task tasks[NR];

static void fork_all(void)
{
	for (int i = 0; i < NR; i++) {
		done[i] = 0;
		weft_task_fork(&tasks[i], sets, &done[i]);
	}
}

static void join_and_check(int i)
{
	weft_task_join(&tasks[i]);
	if (done[i] != 1)
		CHECK_EQ(done[i], 1);
}

TEST(joins_may_come_in_any_order)
{
	fork_all();
	for (int i = NR; i-- > 0;)
		join_and_check(i);
	check_all("newest first");
	fork_all();
	for (int i = 0; i < NR; i++)
		join_and_check(i);
	check_all("oldest first");
	fork_all();
	for (int i = 0; i < NR; i++)
		join_and_check((int)(i * 1009l % NR));
	check_all("mixed");
}

static void forks_and_joins_older(void *arg)
{
	weft_task mine;
	int n = 0;

	weft_task_fork(&mine, counts, &n);
	weft_task_join(&mine);
	*(int *)arg += n;
}

TEST(tasks_fork_tasks_whatever_the_order)
{
	weft_task t[20];
	int n[20] = { 0 };

	for (int i = 0; i < 20; i++)
		weft_task_fork(&t[i], forks_and_joins_older, &n[i]);
	for (int i = 0; i < 20; i++)
		weft_task_join(&t[i ^ 1]);
	for (int i = 0; i < 20; i++)
		CHECK_EQ(n[i], 1);
}

/* --- programs --- */

TEST(numbers_of_fibonacci)
{
	struct fib f = { 21, 0 };

	fib(&f);
	CHECK_EQ(f.result, 10946);
}

struct skynet {
	long from, size, result;
};

static void skynet(void *arg)
{
	struct skynet *s = arg, part[10];
	weft_task t[10];

	s->result = s->from;
	if (s->size == 1)
		return;
	for (int i = 0; i < 10; i++) {
		part[i] = (struct skynet){ s->from + i * (s->size / 10), s->size / 10, 0 };
		weft_task_fork(&t[i], skynet, &part[i]);
	}
	s->result = 0;
	for (int i = 9; i >= 0; i--) {
		weft_task_join(&t[i]);
		s->result += part[i].result;
	}
}

TEST(a_tree_of_many_tasks)
{
	struct skynet s = { 0, 100000, 0 };

	skynet(&s);
	CHECK_EQ(s.result, 4999950000);
}

struct board {
	int row, nr;
	unsigned columns, down, up;
	long result;
};

static void queens(void *arg)
{
	struct board *b = arg, next[8];
	weft_task t[8];
	int nr = 0;

	b->result = b->row == b->nr;
	if (b->result)
		return;
	for (int i = 0; i < b->nr; i++) {
		unsigned bit = 1u << i;

		if (!((b->columns | b->down | b->up) & bit)) {
			next[nr] = (struct board){ b->row + 1,         b->nr,
						   b->columns | bit,   (b->down | bit) << 1,
						   (b->up | bit) >> 1, 0 };
			weft_task_fork(&t[nr], queens, &next[nr]);
			nr++;
		}
	}
	while (nr-- > 0) {
		weft_task_join(&t[nr]);
		b->result += next[nr].result;
	}
}

TEST(queens_on_a_board)
{
	struct board b = { .nr = 8 };

	queens(&b);
	CHECK_EQ(b.result, 92);
}

struct part {
	unsigned *at, *spare;
	size_t nr;
};

static void sort(void *arg)
{
	struct part *p = arg;
	size_t half = p->nr / 2, a = 0, b = half, n = 0;
	struct part left = { p->at, p->spare, half },
		    right = { p->at + half, p->spare + half, p->nr - half };
	weft_task t;

	if (p->nr < 2)
		return;
	weft_task_fork(&t, sort, &left);
	sort(&right);
	weft_task_join(&t);
	while (a < half || b < p->nr)
		if (b == p->nr || (a < half && p->at[a] <= p->at[b]))
			p->spare[n++] = p->at[a++];
		else
			p->spare[n++] = p->at[b++];
	memcpy(p->at, p->spare, p->nr * sizeof(*p->at));
}

#define NR_SORTED 20000

TEST(a_sort_by_halves)
{
	static unsigned numbers[NR_SORTED], spare[NR_SORTED];
	struct part all = { numbers, spare, NR_SORTED };
	unsigned x = 1;
	bool is_sorted = true;

	for (size_t i = 0; i < NR_SORTED; i++)
		numbers[i] = x = x * 1664525 + 1013904223;
	sort(&all);
	for (size_t i = 1; i < NR_SORTED; i++)
		is_sorted = is_sorted && numbers[i - 1] <= numbers[i];
	CHECK(is_sorted);
}

#define NR_COVERED 10000

static unsigned char covered[NR_COVERED + 2];
static size_t largest;

static void covers(size_t from, size_t to, void *arg)
{
	size_t n = to - from, seen = __atomic_load_n(&largest, __ATOMIC_RELAXED);

	while (n > seen && !__atomic_compare_exchange_n(&largest, &seen, n, false, __ATOMIC_RELAXED,
							__ATOMIC_RELAXED))
		;
	for (size_t i = from; i < to; i++)
		covered[i]++;
}

static void check_covered(size_t begin, size_t end, size_t grain, size_t most)
{
	bool is_right = true;

	memset(covered, 0, sizeof(covered));
	largest = 0;
	weft_task_for(begin, end, grain, covers, NULL);
	for (size_t i = 0; i < sizeof(covered); i++)
		is_right = is_right && covered[i] == (i >= begin && i < end);
	CHECK(is_right);
	CHECK(largest <= most);
}

TEST(task_for_covers_the_range_once)
{
	check_covered(1, NR_COVERED + 1, 7, 7);
	check_covered(1, NR_COVERED + 1, 1, 1);
	check_covered(1, NR_COVERED + 1, NR_COVERED, NR_COVERED);
	check_covered(0, NR_COVERED, 0, NR_COVERED / 2);
	check_covered(5, 6, 0, 1);
	check_covered(5, 5, 3, 0);
	check_covered(6, 5, 3, 0);
}
