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

/* A word that is in nobody's list of robust locks. */
static int orphan;

static void *ends_as_owner(void *arg)
{
	CHECK_SYS(futex(&orphan, FUTEX_LOCK_PI_PRIVATE, NULL));
	STORE((int *)arg, 1);
	while (!(LOAD(&orphan) & (int)FUTEX_WAITERS))
		sched_yield();
	/* The kernel's lock of such words: who set the bit under it is waiting now. */
	CHECK_ERRNO(futex(&orphan, FUTEX_LOCK_PI_PRIVATE, NULL), EDEADLK);
	return NULL;
}

static void *inherits(void *arg)
{
	CHECK_SYS(futex(&orphan, FUTEX_LOCK_PI_PRIVATE, NULL));
	CHECK_EQ(LOAD(&orphan) & FUTEX_TID_MASK, my_tid());
	CHECK(LOAD(&orphan) & FUTEX_OWNER_DIED);
	CHECK_SYS(futex(&orphan, FUTEX_UNLOCK_PI_PRIVATE, NULL));
	return arg;
}

static void check_orphan(void)
{
	int is_held = 0;
	pthread_t owner = start(ends_as_owner, &is_held), heir;

	while (!LOAD(&is_held))
		sched_yield();
	heir = start(inherits, NULL);
	join(owner);
	join(heir);
	CHECK_EQ(orphan, 0);
	ok("a waiter gets the lock of a thread that ends");
}

/* Unlocks and ends at once: who wants the lock then finds it free, or its owner alive, and never an owner who is gone. */
static void *locks_and_ends(void *arg)
{
	uint32_t *brief = arg;
	uint32_t none = 0, self = (uint32_t)my_tid();

	if (!__atomic_compare_exchange_n(brief, &none, self, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		CHECK_SYS(futex((int *)brief, FUTEX_LOCK_PI_PRIVATE, NULL));
	if (!__atomic_compare_exchange_n(brief, &self, 0, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		CHECK_SYS(futex((int *)brief, FUTEX_UNLOCK_PI_PRIVATE, NULL));
	return NULL;
}

static void check_brief_owners(void)
{
	uint32_t brief = 0;
	pthread_t t[NR];

	for (int round = 0; round < ROUNDS / 10; round++) {
		for (int i = 0; i < NR; i++)
			t[i] = start(locks_and_ends, &brief);
		for (int i = 0; i < NR; i++)
			join(t[i]);
	}
	CHECK_EQ(brief, 0);
	ok("owners that end when they have unlocked");
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
	check_orphan();
	check_brief_owners();
	return finish();
}
