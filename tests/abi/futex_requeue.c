// SPDX-License-Identifier: Apache-2.0
/*
 * Raw futex(): REQUEUE, CMP_REQUEUE and WAKE_OP, as glibc and others use them.
 */
#include <linux/futex.h>
#include "check.h"

#define NR 8

static int from, to, nr_up;

static long futex(int *addr, int op, int value, long value2, int *addr2, int value3)
{
	return syscall(SYS_futex, addr, op, value, value2, addr2, value3);
}

static void *waits(void *addr)
{
	long ret = futex((int *)addr, FUTEX_WAIT_PRIVATE, 0, 0, NULL, 0);

	ADD(&nr_up, 1);
	return (void *)(ret == 0 ? 0 : (intptr_t)errno);
}

/*
 * Moves the waiters of `from`. Not before all of them wait: to the kernel a waiter that is moved just as it goes to sleep
 * looks as if it had been woken for nothing, and waits for its first word again. To the same word nobody is moved, but
 * counted.
 */
static void move_all(int op, int nr)
{
	while (CHECK_SYS(futex(&from, op, 0, nr, &from, 0)) < nr)
		sched_yield();
	for (int moved = 0; moved < nr; sched_yield()) {
		long ret = CHECK_SYS(futex(&from, op, 0, 1, &to, 0));

		CHECK(ret <= 1);
		moved += (int)ret;
	}
}

static int wake_op_code(int op, int arg, int cmp, int cmp_arg)
{
	return FUTEX_OP(op, arg, cmp, cmp_arg);
}

static void *waits_for_other_value(void *arg)
{
	int old = *(int *)arg;
	long ret;

	do
		ret = futex(&to, FUTEX_WAIT_PRIVATE, old, 0, NULL, 0);
	while (ret == -1 &&
	       errno == EAGAIN); /* came when the word was as the operation leaves it */
	CHECK_EQ(ret, 0);
	return NULL;
}

/* The operand and what the old value is compared with are twelve bits each, with a sign; the operation may shift. */
static void operate(void)
{
	const int shift = FUTEX_OP_OPARG_SHIFT;
	static const struct {
		int old, op, arg, result, cmp, cmp_arg, holds;
	} cases[] = {
		{ 5, FUTEX_OP_ADD, -1, 4, FUTEX_OP_CMP_EQ, 5, 1 },
		{ 5, FUTEX_OP_ADD, -2048, -2043, FUTEX_OP_CMP_NE, 5, 0 },
		{ 5, FUTEX_OP_ADD, 2047, 2052, FUTEX_OP_CMP_GT, 4, 1 },
		{ -3, FUTEX_OP_SET, -2, -2, FUTEX_OP_CMP_EQ, -3, 1 },
		{ -3, FUTEX_OP_SET, 7, 7, FUTEX_OP_CMP_LT, -3, 0 },
		{ -3, FUTEX_OP_SET, 7, 7, FUTEX_OP_CMP_LE, -3, 1 },
		{ -4, FUTEX_OP_SET, 7, 7, FUTEX_OP_CMP_LT, -3, 1 },
		{ 1, FUTEX_OP_SET, 7, 7, FUTEX_OP_CMP_GE, -2048, 1 },
		{ 1, FUTEX_OP_SET, 7, 7, FUTEX_OP_CMP_GT, 1, 0 },
		{ 1, FUTEX_OP_SET, 7, 7, FUTEX_OP_CMP_GE, 2, 0 },
		{ 6, FUTEX_OP_OR, -8, -2, FUTEX_OP_CMP_NE, -1, 1 },
		{ -1, FUTEX_OP_ANDN, -4, 3, FUTEX_OP_CMP_EQ, 2047, 0 },
		{ 12, FUTEX_OP_XOR, -1, -13, FUTEX_OP_CMP_LE, 11, 0 },
		{ 0, FUTEX_OP_OR | shift, 31, INT32_MIN, FUTEX_OP_CMP_EQ, 0, 1 },
		{ 2, FUTEX_OP_ADD | shift, 4, 18, FUTEX_OP_CMP_EQ, 2, 1 },
		{ 7, FUTEX_OP_ANDN | shift, 1, 5, FUTEX_OP_CMP_LT, 7, 0 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int old = cases[i].old;
		pthread_t t;

		STORE(&to, old);
		t = start(waits_for_other_value, &old);
		while (CHECK_SYS(futex(&to, FUTEX_REQUEUE_PRIVATE, 0, 1, &to, 0)) < 1)
			sched_yield();
		CHECK_EQ(futex(&from, FUTEX_WAKE_OP_PRIVATE, 1, 1, &to,
			       FUTEX_OP(cases[i].op, cases[i].arg & 0xfff, cases[i].cmp,
					cases[i].cmp_arg & 0xfff)),
			 cases[i].holds);
		CHECK_EQ(to, cases[i].result);
		CHECK_EQ(futex(&to, FUTEX_WAKE_PRIVATE, 1, 0, NULL, 0), !cases[i].holds);
		join(t);
	}
}

int main(void)
{
	pthread_t t[NR];

	have_threads();
	CHECK_EQ(futex(&from, FUTEX_REQUEUE_PRIVATE, 1, 1, &to, 0), 0);
	CHECK_ERRNO(futex(&from, FUTEX_CMP_REQUEUE_PRIVATE, 1, 1, &to, 5), EAGAIN);
	CHECK_ERRNO(futex(&from, FUTEX_CMP_REQUEUE_PRIVATE, -1, 1, &to, 0), EINVAL);
	CHECK_ERRNO(futex(&from, FUTEX_CMP_REQUEUE_PRIVATE, 1, -1, &to, 0), EINVAL);
	CHECK_ERRNO(futex(&from, FUTEX_REQUEUE_PRIVATE, 1, 1, (int *)((char *)&to + 1), 0), EINVAL);
	ok("errors");

	for (int round = 0; round < 2; round++) {
		nr_up = 0;
		for (int i = 0; i < NR; i++)
			t[i] = start(waits, &from);
		move_all(round ? FUTEX_CMP_REQUEUE_PRIVATE : FUTEX_REQUEUE_PRIVATE, NR);
		CHECK_EQ(LOAD(&nr_up), 0);
		CHECK_EQ(futex(&from, FUTEX_WAKE_PRIVATE, NR, 0, NULL, 0), 0);
		CHECK_EQ(futex(&to, FUTEX_WAKE_PRIVATE, 3, 0, NULL, 0), 3);
		CHECK_EQ(futex(&to, FUTEX_WAKE_PRIVATE, NR, 0, NULL, 0), NR - 3);
		for (int i = 0; i < NR; i++)
			CHECK_EQ((intptr_t)join(t[i]), 0);
		ok(round ? "cmp_requeue" : "requeue");
	}

	for (int i = 0; i < NR; i++)
		t[i] = start(waits, &from);
	move_all(FUTEX_REQUEUE_PRIVATE, NR);
	/* Back to where they came from, waking two on the way. */
	CHECK_EQ(futex(&to, FUTEX_CMP_REQUEUE_PRIVATE, 2, NR, &from, 0), NR);
	CHECK_EQ(futex(&to, FUTEX_WAKE_PRIVATE, NR, 0, NULL, 0), 0);
	CHECK_EQ(futex(&from, FUTEX_WAKE_PRIVATE, NR, 0, NULL, 0), NR - 2);
	for (int i = 0; i < NR; i++)
		CHECK_EQ((intptr_t)join(t[i]), 0);
	ok("wake some and requeue the others");

	to = 7;
	CHECK_EQ(futex(&from, FUTEX_WAKE_OP_PRIVATE, 1, 1, &to,
		       wake_op_code(FUTEX_OP_ADD, 5, FUTEX_OP_CMP_EQ, 7)),
		 0);
	CHECK_EQ(to, 12);
	CHECK_EQ(futex(&from, FUTEX_WAKE_OP_PRIVATE, 1, 1, &to,
		       wake_op_code(FUTEX_OP_SET, 0, FUTEX_OP_CMP_GT, 12)),
		 0);
	CHECK_EQ(to, 0);
	CHECK_EQ(futex(&from, FUTEX_WAKE_OP_PRIVATE, 1, 1, &to,
		       wake_op_code(FUTEX_OP_OR, 6, FUTEX_OP_CMP_LT, 0)),
		 0);
	CHECK_EQ(futex(&from, FUTEX_WAKE_OP_PRIVATE, 1, 1, &to,
		       wake_op_code(FUTEX_OP_ANDN, 2, FUTEX_OP_CMP_NE, 0)),
		 0);
	CHECK_EQ(futex(&from, FUTEX_WAKE_OP_PRIVATE, 1, 1, &to,
		       wake_op_code(FUTEX_OP_XOR, 5, FUTEX_OP_CMP_NE, 0)),
		 0);
	CHECK_EQ(to, 1);
	ok("wake_op: arithmetic");
	operate();
	ok("wake_op: signs, comparisons, shifts");

	to = 0;
	for (int i = 0; i < 4; i++)
		t[i] = start(waits, &from);
	move_all(FUTEX_REQUEUE_PRIVATE, 4);
	/* The comparison fails: only `from` would be woken. Then it holds. */
	CHECK_EQ(futex(&from, FUTEX_WAKE_OP_PRIVATE, 4, 4, &to,
		       wake_op_code(FUTEX_OP_ADD, 1, FUTEX_OP_CMP_EQ, 9)),
		 0);
	CHECK_EQ(futex(&from, FUTEX_WAKE_OP_PRIVATE, 4, 4, &to,
		       wake_op_code(FUTEX_OP_ADD, 1, FUTEX_OP_CMP_EQ, 1)),
		 4);
	CHECK_EQ(to, 2);
	for (int i = 0; i < 4; i++)
		CHECK_EQ((intptr_t)join(t[i]), 0);
	ok("wake_op: wakes the second word when the comparison holds");
	return finish();
}
