// SPDX-License-Identifier: Apache-2.0
/*
 * Raw futex(): WAIT, WAKE, the BITSET variants, timeouts on both clocks, EAGAIN, EINVAL, EFAULT.
 */
#include <linux/futex.h>
#include "check.h"

#define NR 10

static int word, nr_up;

static long futex(int *addr, int op, int value, const void *timeout, int *addr2, int value3)
{
	return syscall(SYS_futex, addr, op, value, timeout, addr2, value3);
}

static void *waits(void *arg)
{
	while (LOAD(&word) == 0)
		if (futex(&word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0) == -1)
			CHECK(errno == EAGAIN || errno == EINTR);
	ADD(&nr_up, 1);
	return arg;
}

static void *waits_for_bit(void *arg)
{
	int bit = 1 << (int)(intptr_t)arg;

	if (futex(&word, FUTEX_WAIT_BITSET_PRIVATE, 0, NULL, NULL, bit) == -1)
		return (void *)1;
	ADD(&nr_up, 1);
	return NULL;
}

/* Wakes until the waiters, which may not have started to wait yet, were all woken. */
static void wake_in_all(int nr, int op, int bits)
{
	for (int woken = 0; woken < nr; sched_yield()) {
		long ret = CHECK_SYS(futex(&word, op, 1, NULL, NULL, bits));

		CHECK(ret <= 1);
		woken += (int)ret;
	}
}

#define NR_WORDS 256

static int words[NR_WORDS];

static void *waits_at(void *arg)
{
	return (void *)(intptr_t)(futex(arg, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0) ? errno : 0);
}

/* So many that some of them meet in whatever table they are kept in. */
static void each_its_own(void)
{
	pthread_t t[NR_WORDS];

	for (int i = 0; i < NR_WORDS; i++) {
		t[i] = start(waits_at, &words[i]);
		while (CHECK_SYS(futex(&words[i], FUTEX_REQUEUE_PRIVATE, 0, (void *)1, &words[i],
				       0)) < 1)
			sched_yield();
	}
	/* 0 and less mean one */
	for (int i = 0; i < NR_WORDS; i++)
		CHECK_EQ(futex(&words[i], FUTEX_WAKE_PRIVATE, i % 3 ? i % 3 - 2 : INT32_MAX, NULL,
			       NULL, 0),
			 1);
	for (int i = 0; i < NR_WORDS; i++)
		CHECK_EQ((intptr_t)join(t[i]), 0);
}

int main(void)
{
	pthread_t t[NR];
	struct timespec ts;

	have_threads();
	CHECK_ERRNO(futex(&word, FUTEX_WAIT, 1, NULL, NULL, 0), EAGAIN);
	CHECK_ERRNO(futex(&word, FUTEX_WAIT_PRIVATE, 1, NULL, NULL, 0), EAGAIN);
	CHECK_EQ(futex(&word, FUTEX_WAKE, 100, NULL, NULL, 0), 0);
	CHECK_EQ(futex(&word, FUTEX_WAKE_PRIVATE, 100, NULL, NULL, 0), 0);
	CHECK_ERRNO(futex((int *)((char *)&word + 1), FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0),
		    EINVAL);
	CHECK_ERRNO(futex(&word, FUTEX_WAIT_BITSET_PRIVATE, 0, NULL, NULL, 0), EINVAL);
	CHECK_ERRNO(futex(&word, FUTEX_WAKE_BITSET_PRIVATE, 1, NULL, NULL, 0), EINVAL);
	CHECK_ERRNO(futex(&word, 99, 0, NULL, NULL, 0), ENOSYS);
	ts.tv_sec = 0;
	ts.tv_nsec = SEC;
	CHECK_ERRNO(futex(&word, FUTEX_WAIT_PRIVATE, 0, &ts, NULL, 0), EINVAL);
	CHECK_ERRNO(futex((int *)4096, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0), EFAULT);
	CHECK_ERRNO(futex((int *)4096, FUTEX_WAIT, 0, NULL, NULL, 0), EFAULT);
	CHECK_ERRNO(futex(&word, FUTEX_WAIT_PRIVATE, 0, (void *)8, NULL, 0), EFAULT);
	ok("errors");

	for (int i = 0; i < 4; i++) {
		int64_t before = now_ns();

		ts = timespec_of(i * 5 * MS);
		CHECK_ERRNO(futex(&word, i % 2 ? FUTEX_WAIT : FUTEX_WAIT_PRIVATE, 0, &ts, NULL, 0),
			    ETIMEDOUT);
		CHECK(now_ns() - before >= i * 5 * MS);
		before = now_ns();
		ts = timespec_of(before + i * 5 * MS);
		CHECK_ERRNO(futex(&word, FUTEX_WAIT_BITSET_PRIVATE, 0, &ts, NULL, -1), ETIMEDOUT);
		CHECK(now_ns() - before >= i * 5 * MS);
		before = clock_ns(CLOCK_REALTIME);
		ts = timespec_of(before + i * 5 * MS);
		CHECK_ERRNO(futex(&word, FUTEX_WAIT_BITSET_PRIVATE | FUTEX_CLOCK_REALTIME, 0, &ts,
				  NULL, -1),
			    ETIMEDOUT);
		CHECK(clock_ns(CLOCK_REALTIME) - before >= i * 5 * MS);
	}
	ok("timeouts, relative and absolute");

	for (int i = 0; i < NR; i++)
		t[i] = start(waits, NULL);
	let_others_block();
	CHECK_EQ(nr_up, 0);
	STORE(&word, 1);
	CHECK(CHECK_SYS(futex(&word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0)) <= 1);
	CHECK(CHECK_SYS(futex(&word, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0)) <= NR);
	for (int i = 0; i < NR; i++)
		join(t[i]);
	CHECK_EQ(nr_up, NR);
	ok("wake one, wake all");

	word = nr_up = 0;
	for (intptr_t i = 0; i < NR; i++)
		t[i] = start(waits_for_bit, (void *)i);
	while (CHECK_SYS(futex(&word, FUTEX_REQUEUE_PRIVATE, 0, (void *)NR, &word, 0)) < NR)
		sched_yield();
	CHECK_EQ(futex(&word, FUTEX_WAKE_BITSET_PRIVATE, 100, NULL, NULL, 1 << 20), 0);
	/* the last who came first */
	for (int i = NR - 1; i >= 0; i--) {
		CHECK_EQ(futex(&word, FUTEX_WAKE_BITSET_PRIVATE, 100, NULL, NULL, 1 << i), 1);
		CHECK_EQ((intptr_t)join(t[i]), 0);
		CHECK_EQ(LOAD(&nr_up), NR - i);
	}
	ok("bitsets choose who wakes");

	for (intptr_t i = 0; i < NR; i++)
		t[i] = start(waits_for_bit, (void *)i);
	wake_in_all(NR, FUTEX_WAKE_PRIVATE, 0);
	for (int i = 0; i < NR; i++)
		CHECK_EQ((intptr_t)join(t[i]), 0);
	ok("a plain wake matches every bitset");
	each_its_own();
	ok("a wake is for one word");
	return finish();
}
