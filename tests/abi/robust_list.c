// SPDX-License-Identifier: Apache-2.0
/*
 * Robust lists as the kernel reads them when a thread ends: the locks on the list, and the one that the thread was about to
 * take or had just given up. The lists are made by hand; libc's are always in order.
 */
#include <linux/futex.h>
#include <stddef.h>
#include <sys/mman.h>
#include "check.h"

#define OTHER 1 /* a thread id, but never of who ends */
#define LIMIT (5 * SEC)

struct lock {
	struct robust_list link;
	unsigned word;
};

enum place {
	NOWHERE,
	LISTED,
	PENDING,
	BOTH,
	NOT_REACHED,  /* behind a link that leads nowhere */
	AFTER_NONE,   /* behind an entry whose lock cannot be read */
	AFTER_CROOKED /* behind an entry whose lock is not aligned */
};

struct row {
	const char *name;
	enum place place;
	unsigned word;   /* FUTEX_TID_MASK stands for the id of the thread that ends */
	unsigned result; /* so here */
	int wakes;
};

#define OWN FUTEX_TID_MASK
static const struct row rows[] = {
	{ "listed, owned", LISTED, OWN, FUTEX_OWNER_DIED, 0 },
	{ "listed, owned, waited for", LISTED, OWN | FUTEX_WAITERS,
	  FUTEX_OWNER_DIED | FUTEX_WAITERS, 1 },
	{ "listed, another's", LISTED, OTHER | FUTEX_WAITERS, OTHER | FUTEX_WAITERS, 0 },
	{ "listed, free", LISTED, 0, 0, 0 },
	{ "pending, owned", PENDING, OWN, FUTEX_OWNER_DIED, 0 },
	{ "pending, owned, waited for", PENDING, OWN | FUTEX_WAITERS,
	  FUTEX_OWNER_DIED | FUTEX_WAITERS, 1 },
	{ "pending, another's", PENDING, OTHER | FUTEX_WAITERS, OTHER | FUTEX_WAITERS, 0 },
	{ "pending, just unlocked", PENDING, 0, 0, 1 },
	{ "listed and pending", BOTH, OWN | FUTEX_WAITERS, FUTEX_OWNER_DIED | FUTEX_WAITERS, 1 },
	{ "behind a bad link", NOT_REACHED, OWN | FUTEX_WAITERS, OWN | FUTEX_WAITERS, 0 },
	{ "behind an entry without a lock", AFTER_NONE, OWN | FUTEX_WAITERS, OWN | FUTEX_WAITERS,
	  0 },
	{ "behind a crooked lock", AFTER_CROOKED, OWN | FUTEX_WAITERS, OWN | FUTEX_WAITERS, 0 },
	{ "in no list", NOWHERE, OWN | FUTEX_WAITERS, OWN | FUTEX_WAITERS, 0 },
};

static struct lock lock, first;
static struct robust_list_head head;
static unsigned own;
static int is_ready, nr_waiting, nr_woken;

static unsigned own_word(unsigned word)
{
	return (word & FUTEX_TID_MASK) == OWN ? (word & ~OWN) | own : word;
}

/* The last word that can be read, or one that is not aligned, leads to the lock. */
static struct robust_list *bad_entry(enum place place)
{
	static char crooked[32] __attribute__((aligned(8)));
	static char *pages;
	char *at = crooked + 2;

	if (!pages) {
		pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			     0);
		CHECK(pages != MAP_FAILED);
		CHECK_SYS(mprotect(pages + 4096, 4096, PROT_NONE));
	}
	if (place == AFTER_NONE)
		at = pages + 4096 - sizeof(struct robust_list);
	memcpy(at, &(struct robust_list *){ &lock.link }, sizeof(struct robust_list));
	return (struct robust_list *)at;
}

static void *ends(void *arg)
{
	const struct row *r = arg;

	own = (unsigned)gettid();
	/* The waiter sleeps at a value that no end of a thread writes: nothing but a wake ends it. */
	head = (struct robust_list_head){ .list.next = &head.list,
					  .futex_offset = offsetof(struct lock, word) };
	first = (struct lock){ .link.next = &lock.link };
	lock.link.next = &head.list;
	if (r->place == LISTED || r->place == BOTH)
		head.list.next = &first.link; /* one that is free goes before it */
	if (r->place == PENDING || r->place == BOTH)
		head.list_op_pending = &lock.link;
	if (r->place == NOT_REACHED) {
		first.link.next = (struct robust_list *)8;
		head.list.next = &first.link;
	}
	if (r->place == AFTER_NONE || r->place == AFTER_CROOKED)
		head.list.next = bad_entry(r->place);
	CHECK_SYS(syscall(SYS_set_robust_list, &head, sizeof(head)));
	STORE(&lock.word, own_word(r->word));
	STORE(&is_ready, 1);
	while (LOAD(&is_ready) == 1)
		sched_yield();
	return NULL;
}

/* The futex is shared, as the kernel takes those of robust lists to be. */
static void *waits(void *arg)
{
	unsigned value = LOAD(&lock.word);

	ADD(&nr_waiting, 1);
	if (syscall(SYS_futex, &lock.word, FUTEX_WAIT, value, NULL, NULL, 0) == -1)
		CHECK_EQ(errno, EAGAIN); /* it came first: there is nothing to be woken from */
	ADD(&nr_woken, 1);
	return arg;
}

static void try_row(const struct row *r)
{
	pthread_t ending, waiters[2];
	int64_t limit;

	nr_waiting = nr_woken = is_ready = 0;
	ending = start(ends, (void *)r);
	while (!LOAD(&is_ready))
		sched_yield();
	for (int i = 0; i < 2; i++)
		waiters[i] = start(waits, NULL);
	while (LOAD(&nr_waiting) < 2)
		sched_yield();
	let_others_block();
	STORE(&is_ready, 2);
	join(ending);
	limit = now_ns() + LIMIT;
	while (LOAD(&nr_woken) < r->wakes && now_ns() < limit)
		sched_yield();
	let_others_block(); /* time for one too many */
	CHECK_EQ(LOAD(&nr_woken), r->wakes);
	CHECK_EQ(LOAD(&lock.word), own_word(r->result));
	while (LOAD(&nr_woken) < 2) {
		CHECK_SYS(syscall(SYS_futex, &lock.word, FUTEX_WAKE, 2, NULL, NULL, 0));
		sched_yield();
	}
	for (int i = 0; i < 2; i++)
		join(waiters[i]);
	ok(r->name);
}

/* A list without an end: the kernel does not read it for ever. */
static void *ends_with_loop(void *arg)
{
	head = (struct robust_list_head){ .list.next = &first.link,
					  .futex_offset = offsetof(struct lock, word) };
	first.link.next = &lock.link;
	lock.link.next = &first.link;
	first.word = lock.word = 0;
	CHECK_SYS(syscall(SYS_set_robust_list, &head, sizeof(head)));
	return arg;
}

static void *asks(void *arg)
{
	struct robust_list_head *got = NULL;
	size_t len = 0;

	CHECK_ERRNO(syscall(SYS_set_robust_list, &head, sizeof(head) - 1), EINVAL);
	CHECK_SYS(syscall(SYS_set_robust_list, &head, sizeof(head)));
	CHECK_SYS(syscall(SYS_get_robust_list, 0, &got, &len));
	CHECK(got == &head);
	CHECK_EQ(len, sizeof(head));
	CHECK_SYS(syscall(SYS_get_robust_list, gettid(), &got, &len));
	CHECK(got == &head);
	CHECK_ERRNO(syscall(SYS_get_robust_list, 0, (void *)8, &len), EFAULT);
	head.list.next = &head.list;
	head.list_op_pending = NULL;
	return arg;
}

int main(void)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		try_row(&rows[i]);
	join(start(ends_with_loop, NULL));
	ok("a loop");
	join(start(asks, NULL));
	ok("the address of the list");
	return finish();
}
