// SPDX-License-Identifier: Apache-2.0
/* futex_waitv on words that another process changes and wakes, alone and beside private ones. */
#include <linux/futex.h>
#include <sys/mman.h>
#include "check.h"

#define NR 40 /* threads: more than may hold a kernel thread each */
#define ROUNDS 20
#define SHARED_U32 2u
#define PRIVATE_U32 (2u | FUTEX_PRIVATE_FLAG)

#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif

struct item {
	uint64_t val, addr;
	uint32_t flags, reserved;
};

static struct {
	uint32_t word[NR], never, nr_answers;
} * shared;
static uint32_t private_word;

static long waitv(struct item *items, unsigned n, const struct timespec *deadline)
{
	return syscall(SYS_futex_waitv, items, n, 0, deadline, CLOCK_MONOTONIC);
}

static struct item item_of(uint32_t *word, uint32_t flags)
{
	return (struct item){ .addr = (uintptr_t)word, .val = LOAD(word), .flags = flags };
}

/* In both processes: no library in between. */
static void store_and_wake(uint32_t *word, uint32_t value)
{
	STORE(word, value);
	(void)syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

static void wait_until(uint32_t *word, uint32_t value)
{
	uint32_t seen;

	while ((seen = LOAD(word)) < value)
		(void)syscall(SYS_futex, word, FUTEX_WAIT, seen, NULL, NULL, 0);
}

static void *answers(void *arg)
{
	uint32_t *word = &shared->word[(intptr_t)arg];

	for (uint32_t round = 1; round <= ROUNDS; round++) {
		while (LOAD(word) < round) {
			struct item items[2] = { item_of(&shared->never, SHARED_U32),
						 item_of(word, SHARED_U32) };
			long ret;

			if (items[1].val >= round)
				break;
			ret = waitv(items, 2, NULL);
			CHECK(ret == 1 || (ret == -1 && errno == EAGAIN));
		}
		if (ADD(&shared->nr_answers, 1) == NR * round)
			(void)syscall(SYS_futex, &shared->nr_answers, FUTEX_WAKE, 1, NULL, NULL, 0);
	}
	return NULL;
}

static void *waits_for_both_kinds(void *arg)
{
	for (uint32_t round = 1; round <= 10; round++) {
		uint32_t *word = round % 2 ? &shared->word[0] : &private_word;

		while (LOAD(word) < round) {
			struct item items[2] = { item_of(&private_word, PRIVATE_U32),
						 item_of(&shared->word[0], SHARED_U32) };
			long ret;

			if (LOAD(word) >= round)
				break;
			ret = waitv(items, 2, NULL);
			CHECK(ret == 0 || ret == 1 || (ret == -1 && errno == EAGAIN));
		}
		store_and_wake(&shared->nr_answers, round);
	}
	return arg;
}

static void *times_out(void *arg)
{
	struct timespec soon = timespec_of(now_ns() + 20 * MS);
	struct item items[2] = { item_of(&shared->never, SHARED_U32),
				 item_of(&private_word, PRIVATE_U32) };

	CHECK_ERRNO(waitv(items, arg ? 2 : 1, &soon), ETIMEDOUT);
	CHECK(now_ns() >= soon.tv_sec * SEC + soon.tv_nsec);
	items[0].val++;
	CHECK_ERRNO(waitv(items, arg ? 2 : 1, &soon), EAGAIN);
	return arg;
}

static pid_t fork_other(void (*fn)(void))
{
	pid_t pid = fork();

	if (!pid) {
		fn();
		_exit(0);
	}
	CHECK_SYS(pid);
	return pid;
}

static void asks_all(void)
{
	for (uint32_t round = 1; round <= ROUNDS; round++) {
		for (int i = 0; i < NR; i++)
			store_and_wake(&shared->word[i], round);
		wait_until(&shared->nr_answers, NR * round);
	}
}

static void asks_in_odd_rounds(void)
{
	for (uint32_t round = 1; round <= 10; round += 2) {
		wait_until(&shared->nr_answers, round - 1);
		store_and_wake(&shared->word[0], round);
	}
}

int main(void)
{
	pthread_t t[NR];
	pid_t other;

	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (waitv(NULL, 1, NULL) == -1 && errno == ENOSYS)
		return EXIT_SKIP;
	for (intptr_t i = 0; i < NR; i++)
		t[i] = start(answers, (void *)i);
	other = fork_other(asks_all);
	for (int i = 0; i < NR; i++)
		join(t[i]);
	reap(other);
	ok("another process wakes many vectors");

	memset(shared, 0, sizeof(*shared));
	t[0] = start(waits_for_both_kinds, NULL);
	other = fork_other(asks_in_odd_rounds);
	for (uint32_t round = 2; round <= 10; round += 2) {
		wait_until(&shared->nr_answers, round - 1);
		STORE(&private_word, round);
		(void)syscall(SYS_futex, &private_word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	}
	join(t[0]);
	reap(other);
	ok("private words beside shared ones");

	join(start(times_out, NULL));
	join(start(times_out, &private_word));
	ok("time-outs and changed words");
	return finish();
}
