// SPDX-License-Identifier: Apache-2.0
/* Tasks for the tests of them. */
#ifndef WEFT_TESTS_NATIVE_TASKS_H
#define WEFT_TESTS_NATIVE_TASKS_H

#include <weft/task.h>

static inline void counts(void *arg)
{
	(void)__atomic_fetch_add((int *)arg, 1, __ATOMIC_RELAXED);
}

struct fib {
	int n;
	long result;
};

static inline void fib(void *arg)
{
	struct fib *f = arg, left = { f->n - 1, 0 }, right = { f->n - 2, 0 };
	weft_task t;

	f->result = f->n;
	if (f->n < 2)
		return;
	weft_task_fork(&t, fib, &left);
	fib(&right);
	weft_task_join(&t);
	f->result = left.result + right.result;
}

#endif
