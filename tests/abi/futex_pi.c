// SPDX-License-Identifier: Apache-2.0
/*
 * Raw futex(): LOCK_PI, TRYLOCK_PI, UNLOCK_PI, with the owner's tid in the word.
 */
#include <linux/futex.h>
#include "check.h"

#define NR 6
#define ROUNDS 300

static int word;
static long counter;

static long futex(int *addr, int op, const struct timespec *ts)
{
	return syscall(SYS_futex, addr, op, 0, ts, NULL, 0);
}

static int my_tid(void)
{
	return (int)syscall(SYS_gettid);
}

static void *hammers(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		/* Always through the kernel's door, also when nobody owns the word. */
		while (futex(&word, FUTEX_LOCK_PI_PRIVATE, NULL) == -1)
			CHECK(errno == EAGAIN || errno == EINTR);
		CHECK_EQ(LOAD(&word) & FUTEX_TID_MASK, my_tid());
		long seen = counter;

		if (i % 8 == 0)
			sched_yield();
		counter = seen + 1;
		CHECK_SYS(futex(&word, FUTEX_UNLOCK_PI_PRIVATE, NULL));
	}
	return arg;
}

static void *fails(void *arg)
{
	struct timespec ts = timespec_of(clock_ns(CLOCK_REALTIME) + 20 * MS);

	CHECK_ERRNO(futex(&word, FUTEX_UNLOCK_PI_PRIVATE, NULL), EPERM);
	CHECK(futex(&word, FUTEX_TRYLOCK_PI_PRIVATE, NULL) == -1);
	CHECK(errno == EAGAIN || errno == EWOULDBLOCK);
	CHECK_ERRNO(futex(&word, FUTEX_LOCK_PI_PRIVATE, &ts), ETIMEDOUT);
	CHECK(clock_ns(CLOCK_REALTIME) >= ts.tv_sec * SEC + ts.tv_nsec);
	return arg;
}

int main(void)
{
	pthread_t t[NR];

	CHECK_SYS(futex(&word, FUTEX_TRYLOCK_PI_PRIVATE, NULL));
	CHECK_EQ(word & FUTEX_TID_MASK, my_tid());
	CHECK_ERRNO(futex(&word, FUTEX_LOCK_PI_PRIVATE, NULL), EDEADLK);
	join(start(fails, NULL));
	CHECK_SYS(futex(&word, FUTEX_UNLOCK_PI_PRIVATE, NULL));
	CHECK_EQ(word, 0);
	CHECK_ERRNO(futex(&word, FUTEX_UNLOCK_PI_PRIVATE, NULL), EPERM);
	ok("trylock, errors, timeout");

	for (int i = 0; i < NR; i++)
		t[i] = start(hammers, NULL);
	for (int i = 0; i < NR; i++)
		join(t[i]);
	CHECK_EQ(counter, NR * ROUNDS);
	CHECK_EQ(word & FUTEX_TID_MASK, 0);
	ok("exclusion under load");
	return finish();
}
