// SPDX-License-Identifier: Apache-2.0
/*
 * The cost of fibers and tasks, in ns. The least of some rounds is what the code takes; "typical" is the median, and the processor's
 * column is what all threads of the process have used, which says more on a machine that has something else to do.
 *
 * Usage: bench-native [part of a row's name]       WEFT=0: with threads of the kernel
 */
#include <weft/weft.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ROUNDS 9

static double cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* --- fibers --- */

static void *yields(void *arg)
{
	while (arg != yields)
		arg = weft_fiber_yield(arg);
	return NULL;
}

static void resume_yield(long n)
{
	weft_fiber *f = weft_fiber_new(yields, NULL);

	for (long i = 0; i < n; i++)
		(void)weft_fiber_resume(f, NULL);
	weft_fiber_free(f);
}

static void *returns(void *arg)
{
	return arg;
}

static void new_run_free(long n)
{
	for (long i = 0; i < n; i++) {
		weft_fiber *f = weft_fiber_new(returns, NULL);

		(void)weft_fiber_resume(f, NULL);
		weft_fiber_free(f);
	}
}

/* --- tasks --- */

static void nothing(void *arg)
{
	(void)arg;
}

static void fork_join(long n)
{
	for (long i = 0; i < n; i++) {
		weft_task t;

		weft_task_fork(&t, nothing, NULL);
		weft_task_join(&t);
	}
}

static void fork_join_10(long n)
{
	for (long i = 0; i < n; i += 10) {
		weft_task t[10];

		for (int j = 0; j < 10; j++)
			weft_task_fork(&t[j], nothing, NULL);
		for (int j = 10; j-- > 0;)
			weft_task_join(&t[j]);
	}
}

struct fib {
	int n;
	long result;
};

static void call_fib(void *arg)
{
	struct fib *f = arg, left = { f->n - 1, 0 }, right = { f->n - 2, 0 };
	weft_task t;

	f->result = f->n;
	if (f->n < 2)
		return;
	weft_task_fork(&t, call_fib, &left);
	call_fib(&right);
	weft_task_join(&t);
	f->result = left.result + right.result;
}

#define FIB 27
#define FIB_FORKS 317810 /* fib(n + 1) - 1 */

static void fib(long n)
{
	for (; n > 0; n -= FIB_FORKS) {
		struct fib f = { FIB, 0 };

		call_fib(&f);
		if (f.result != 196418)
			abort();
	}
}

struct node {
	long first, leaves, sum;
};

static void call_skynet(void *arg)
{
	struct node *s = arg, below[10];
	weft_task t[10];

	s->sum = s->first;
	if (s->leaves == 1)
		return;
	for (int i = 0; i < 10; i++) {
		below[i] = (struct node){ s->first + i * (s->leaves / 10), s->leaves / 10, 0 };
		weft_task_fork(&t[i], call_skynet, &below[i]);
	}
	s->sum = 0;
	for (int i = 10; i-- > 0;) {
		weft_task_join(&t[i]);
		s->sum += below[i].sum;
	}
}

/* n is 1: the row is the whole tree of a million leaves. */
static void skynet(long n)
{
	struct node root = { 0, 1000000, 0 };

	(void)n;
	call_skynet(&root);
	if (root.sum != 499999500000)
		abort();
}

static void adds(size_t from, size_t to, void *arg)
{
	long sum = 0;

	for (size_t i = from; i < to; i++)
		sum += (long)i;
	(void)__atomic_fetch_add((long *)arg, sum, __ATOMIC_RELAXED);
}

static void task_for(long n)
{
	long sum = 0;

	/* n parts */
	weft_task_for(0, (size_t)n * 16, 16, adds, &sum);
}

static const struct row {
	const char *name;
	void (*run)(long n);
	long n;
} rows[] = {
	{ "resume+yield", resume_yield, 1000000 },
	{ "fiber new+run+free", new_run_free, 100000 },
	{ "fork+join", fork_join, 1000000 },
	{ "fork+join, ten at a time", fork_join_10, 1000000 },
	{ "fib(27), each fork+join", fib, FIB_FORKS },
	{ "task_for, each part", task_for, 100000 },
	{ "skynet, 1 M, whole", skynet, 1 },
};

static int compare(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void run(const struct row *r)
{
	double wall[ROUNDS], cpu[ROUNDS];

	for (int i = 0; i < ROUNDS; i++) {
		const double used = cpu_ns();
		const weft_time began = weft_now();

		r->run(r->n);
		wall[i] = (double)(weft_now() - began) / (double)r->n;
		cpu[i] = (cpu_ns() - used) / (double)r->n;
	}
	qsort(wall, ROUNDS, sizeof(wall[0]), compare);
	qsort(cpu, ROUNDS, sizeof(cpu[0]), compare);
	printf("%-26s %12.1f %12.1f %12.1f\n", r->name, wall[0], wall[ROUNDS / 2], cpu[0]);
	fflush(stdout);
}

static void *does_nothing(void *arg)
{
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t t;

	/* The first thread starts the runtime. */
	if (pthread_create(&t, NULL, does_nothing, NULL) != 0)
		return 1;
	pthread_join(t, NULL);
	printf("%-26s %12s %12s %12s\n", "ns", "least", "typical", "processor");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (argc < 2 || strstr(rows[i].name, argv[1]))
			run(&rows[i]);
	return 0;
}
