// SPDX-License-Identifier: Apache-2.0
/* The table of futex waiters, for futex.c, futex_pi.c and futex_vector.c; the invariant is in futex_table.c. */
#ifndef WF_LINUX_FUTEX_TABLE_H
#define WF_LINUX_FUTEX_TABLE_H

#include "linux/abi.h"
#include "sched/gather.h"

struct lx_futex_bucket {
	struct wf_spin lock;
	struct wf_list waiters;    /* struct lx_futex_wait, by priority, oldest first */
	struct wf_list exit_words; /* struct lx_thread by exit_link */
	struct wf_gather gather;   /* of the contended locks among the waiters' words */
} WF_ALIGNED(WF_CACHE_LINE);

/* An empty table. key: decides where an address goes, and is nobody else's to know. */
void lx_futex_init(uint64_t key);
struct lx_futex_bucket *lx_futex_bucket_of(const uint32_t *addr);
/* Buckets by groups: a bit for that of addr; the first of group i. */
#define LX_FUTEX_GROUPS 64u
#define LX_FUTEX_GROUP_BUCKETS 64u
uint64_t lx_futex_group_of(const uint32_t *addr);
struct lx_futex_bucket *lx_futex_group(uint32_t i);
/* Two buckets are locked in address order; they may be one. */
void lx_futex_lock_two(struct lx_futex_bucket *a, struct lx_futex_bucket *b);
void lx_futex_unlock_two(struct lx_futex_bucket *a, struct lx_futex_bucket *b);
/* Under the bucket's lock: the running thread waits by w. */
void lx_futex_enqueue(struct lx_futex_bucket *b, struct lx_futex_wait *w, uint32_t *addr,
		      uint32_t bitset, bool is_pi);
/* Under the bucket's lock: where w->owner's turn comes. */
void lx_futex_insert(struct lx_futex_bucket *b, struct lx_futex_wait *w);
/* Under the bucket's lock, w is out of it: its thread goes on, if bound once the lock is released by the next function. */
void lx_futex_unpark_owner(struct lx_futex_bucket *b, struct lx_futex_wait *w);
void lx_futex_unlock_after_wake(struct lx_futex_bucket *b);
/* Out of whatever bucket it is in. False: a waker had already taken it out. */
bool lx_futex_withdraw(struct lx_futex_wait *w);
/* Under the bucket's lock. Returns the number of threads woken, n at most. */
uint32_t lx_futex_wake_in(struct lx_futex_bucket *b, const uint32_t *addr, uint32_t n,
			  uint32_t bitset);
long lx_futex_wake(const uint32_t *addr, uint32_t n, uint32_t bitset);
/* FUTEX_WAIT_BITSET and FUTEX_CMP_REQUEUE (expected NULL: no comparison) on private words. */
WF_PARKS long lx_futex_wait_on(uint32_t *addr, uint32_t expected, uint32_t bitset,
			       int64_t deadline);
long lx_futex_requeue(uint32_t *from, uint32_t nr_wake, uint32_t nr_move, uint32_t *to,
		      const uint32_t *expected);
/* A futex word lies in user memory, and is aligned. */
WF_INLINE long lx_futex_check_address(const uint32_t *addr)
{
	if ((uintptr_t)addr & 3)
		return -EINVAL;
	return (uintptr_t)addr < WF_USER_END ? 0 : -EFAULT;
}

/* The words that exits clear, each t's child_tid. */
bool lx_exit_word_is(const uint32_t *addr);
void lx_exit_word_add(struct lx_thread *t);
void lx_exit_word_remove(struct lx_thread *t);
void lx_exit_word_withdraw(struct lx_thread *t);

#endif
