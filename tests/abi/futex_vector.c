// SPDX-License-Identifier: Apache-2.0
/*
 * futex_waitv, and futex_wake, futex_wait and futex_requeue as calls of their own, alone and with futex() on the other
 * side. On a kernel without them every one is ENOSYS, here as there.
 */
#include <linux/futex.h>
#include <stdbool.h>
#include "check.h"

#define NR 8
#define ROUNDS 300
#define PRIVATE_U32 (2u | FUTEX_PRIVATE_FLAG)

#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif
#define NR_FUTEX_WAKE 454
#define NR_FUTEX_WAIT 455
#define NR_FUTEX_REQUEUE 456

struct item {
	uint64_t val, addr;
	uint32_t flags, reserved;
};

static int words[NR], turn;

static long futex(int *addr, int op, int value, const struct timespec *timeout)
{
	return syscall(SYS_futex, addr, op, value, timeout, NULL, 0);
}

static long waitv(struct item *items, unsigned n, const struct timespec *deadline)
{
	return syscall(SYS_futex_waitv, items, n, 0, deadline, CLOCK_MONOTONIC);
}

static void describe_all(struct item *items)
{
	for (int i = 0; i < NR; i++)
		items[i] = (struct item){ .addr = (uintptr_t)&words[i],
					  .val = (uint32_t)LOAD(&words[i]),
					  .flags = PRIVATE_U32 };
}

static struct timespec in_ms(int ms)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	t.tv_nsec += ms * MS;
	t.tv_sec += t.tv_nsec / SEC;
	t.tv_nsec %= SEC;
	return t;
}

static bool has_waitv(void)
{
	return waitv(NULL, 1, NULL) == 0 || errno != ENOSYS;
}

/* Answers each of the ROUNDS changes of any word. */
static void *answers(void *arg)
{
	struct item items[NR];

	for (int round = 0; round < ROUNDS; round++) {
		while (LOAD(&turn) != 2 * round + 1) {
			long ret;

			describe_all(items);
			if (LOAD(&turn) == 2 * round + 1)
				break;
			ret = waitv(items, NR, NULL);
			CHECK((ret >= 0 && ret < NR) || errno == EAGAIN);
		}
		STORE(&turn, 2 * round + 2);
		CHECK_SYS(futex(&turn, FUTEX_WAKE_PRIVATE, 1, NULL));
	}
	return arg;
}

static void any_word_wakes(void)
{
	pthread_t t;

	CHECK_PT(pthread_create(&t, NULL, answers, NULL));
	for (int round = 0; round < ROUNDS; round++) {
		int *word = &words[round % NR];

		STORE(&turn, 2 * round + 1);
		ADD(word, 1);
		CHECK_SYS(futex(word, FUTEX_WAKE_PRIVATE, 1, NULL));
		while (LOAD(&turn) == 2 * round + 1)
			(void)futex(&turn, FUTEX_WAIT_PRIVATE, 2 * round + 1, NULL);
	}
	join(t);
	ok("any word wakes");
}

static void *times_out(void *arg)
{
	struct timespec soon = in_ms(20), past = { 0 };
	struct item items[NR];

	describe_all(items);
	CHECK_EQ(waitv(items, NR, &soon), -1);
	CHECK_EQ(errno, ETIMEDOUT);
	CHECK_EQ(waitv(items, NR, &past), -1);
	CHECK_EQ(errno, ETIMEDOUT);
	items[NR - 1].val++;
	CHECK_EQ(waitv(items, NR, NULL), -1);
	CHECK_EQ(errno, EAGAIN);
	CHECK_EQ(futex(&words[0], FUTEX_WAKE_PRIVATE, 1, NULL), 0); /* nobody was left behind */
	return arg;
}

static void errors(void)
{
	struct item items[NR];

	describe_all(items);
	CHECK_EQ(syscall(SYS_futex_waitv, items, NR, 1, NULL, 0), -1);
	CHECK_EQ(errno, EINVAL);
	CHECK_EQ(waitv(items, 0, NULL), -1);
	CHECK_EQ(errno, EINVAL);
	CHECK_EQ(waitv(items, 129, NULL), -1);
	CHECK_EQ(errno, EINVAL);
	CHECK_EQ(waitv((struct item *)8, 1, NULL), -1);
	CHECK_EQ(errno, EFAULT);
	items[3].flags = FUTEX_PRIVATE_FLAG | 1;
	CHECK_EQ(waitv(items, NR, NULL), -1);
	CHECK_EQ(errno, EINVAL);
	describe_all(items);
	items[3].reserved = 1;
	CHECK_EQ(waitv(items, NR, NULL), -1);
	CHECK_EQ(errno, EINVAL);
	describe_all(items);
	items[3].addr++;
	CHECK_EQ(waitv(items, NR, NULL), -1);
	CHECK_EQ(errno, EINVAL);
	describe_all(items);
	items[3].addr = 4096;
	CHECK_EQ(waitv(items, NR, NULL), -1);
	CHECK_EQ(errno, EFAULT);
}

static void *all_errors(void *arg)
{
	errors();
	return arg;
}

static void handles(int sig)
{
}

static void *is_interrupted(void *arg)
{
	struct item items[NR];

	describe_all(items);
	STORE((int *)arg, 1);
	CHECK_EQ(waitv(items, NR, NULL), -1);
	CHECK_EQ(errno, EINTR);
	STORE((int *)arg, 2);
	return NULL;
}

static void a_signal_ends_it(void)
{
	struct sigaction action = { .sa_handler = handles };
	int stage = 0;
	pthread_t t;

	sigaction(SIGUSR1, &action, NULL);
	CHECK_PT(pthread_create(&t, NULL, is_interrupted, &stage));
	while (LOAD(&stage) != 2) {
		if (LOAD(&stage) == 1)
			pthread_kill(t, SIGUSR1);
		sched_yield();
	}
	join(t);
	ok("a signal ends it");
}

/* --- one call for each operation --- */

static bool has_futex2(void)
{
	return syscall(NR_FUTEX_WAKE, &words[0], 1, 0, PRIVATE_U32) == 0 || errno != ENOSYS;
}

static void *ping(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		while (LOAD(&turn) != 2 * i + 1)
			if (syscall(NR_FUTEX_WAIT, &turn, 2ul * i, ~0u, PRIVATE_U32, NULL, 0) < 0)
				CHECK(errno == EAGAIN);
		STORE(&turn, 2 * i + 2);
		/* the other side waits by futex() */
		CHECK_SYS(syscall(NR_FUTEX_WAKE, &turn, ~0u, 1, PRIVATE_U32));
	}
	return arg;
}

static void old_and_new_calls_meet(void)
{
	pthread_t t;

	STORE(&turn, 0);
	CHECK_PT(pthread_create(&t, NULL, ping, NULL));
	for (int i = 0; i < ROUNDS; i++) {
		STORE(&turn, 2 * i + 1);
		CHECK_SYS(futex(&turn, FUTEX_WAKE_PRIVATE, 1, NULL));
		while (LOAD(&turn) == 2 * i + 1)
			(void)futex(&turn, FUTEX_WAIT_PRIVATE, 2 * i + 1, NULL);
	}
	join(t);
}

static void *waits_for_first(void *arg)
{
	CHECK_SYS(futex(&words[0], FUTEX_WAIT_PRIVATE, LOAD(&words[0]), NULL));
	return arg;
}

static void waiters_move(void)
{
	struct item items[NR];
	pthread_t t[4];

	for (int i = 0; i < 4; i++)
		CHECK_PT(pthread_create(&t[i], NULL, waits_for_first, NULL));
	describe_all(items);
	/* Not before all of them wait: see futex_requeue.c. */
	while (CHECK_SYS(syscall(SYS_futex, &words[0], FUTEX_CMP_REQUEUE_PRIVATE, 0, 4, &words[0],
				 LOAD(&words[0]))) < 4)
		sched_yield();
	for (int moved = 0; moved < 4; sched_yield())
		moved += (int)CHECK_SYS(syscall(NR_FUTEX_REQUEUE, items, 0, 0, 4));
	CHECK_EQ(syscall(NR_FUTEX_WAKE, &words[0], ~0u, 4, PRIVATE_U32), 0);
	/* none is none, and less than none is one */
	CHECK_EQ(syscall(NR_FUTEX_WAKE, &words[1], ~0u, 0, PRIVATE_U32), 0);
	CHECK_EQ(syscall(NR_FUTEX_WAKE, &words[1], ~0u, -1, PRIVATE_U32), 1);
	CHECK_EQ(syscall(NR_FUTEX_WAKE, &words[1], ~0u, 4, PRIVATE_U32), 3);
	for (int i = 0; i < 4; i++)
		join(t[i]);
	items[0].val++;
	CHECK_EQ(syscall(NR_FUTEX_REQUEUE, items, 0, 1, 1), -1);
	CHECK_EQ(errno, EAGAIN);
}

static void *all_of_it(void *arg)
{
	struct timespec soon = in_ms(10);

	old_and_new_calls_meet();
	waiters_move();
	CHECK_EQ(syscall(NR_FUTEX_WAIT, &words[0], (unsigned long)words[0], ~0u, PRIVATE_U32, &soon,
			 CLOCK_MONOTONIC),
		 -1);
	CHECK_EQ(errno, ETIMEDOUT);
	CHECK_EQ(syscall(NR_FUTEX_WAKE, &words[0], ~0u, 0, PRIVATE_U32), 0);
	CHECK_EQ(syscall(NR_FUTEX_WAKE, &words[0], 0, 1, PRIVATE_U32), -1);
	CHECK_EQ(errno, EINVAL);
	CHECK_EQ(syscall(NR_FUTEX_WAKE, &words[0], ~0u, 1, 0x1000), -1);
	CHECK_EQ(errno, EINVAL);
	return arg;
}

int main(void)
{
	pthread_t t;

	if (has_waitv()) {
		any_word_wakes();
		CHECK_PT(pthread_create(&t, NULL, times_out, NULL));
		join(t);
		ok("time-outs and changed words");
		CHECK_PT(pthread_create(&t, NULL, all_errors, NULL));
		join(t);
		ok("errors");
		a_signal_ends_it();
	}
	if (has_futex2()) {
		CHECK_PT(pthread_create(&t, NULL, all_of_it, NULL));
		join(t);
	}
	ok("one call for each operation");
	return finish();
}
