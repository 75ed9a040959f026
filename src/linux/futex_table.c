// SPDX-License-Identifier: Apache-2.0
/*
 * Waiters of futexes, in a hash table keyed by address.
 *
 * Called by: futex.c, futex_pi.c, futex_vector.c; thread.c and start.c for the words that exit clears.
 *
 * Invariant: a waiter is in at most one bucket, the one of its addr. The waker that takes it out, under the bucket's
 * lock, owns its wake-up; the waiter decides by "am I still in?" whether it was woken, so a wake that races
 * with a timeout or a signal is never swallowed. Wakers unpark under the lock: a waiter that returns for
 * another reason first takes the lock, hence no waker still holds a pointer to it.
 */
#include "linux/futex_table.h"
#include "linux/sigwant.h"
#include "linux/scope.h"
#include "sched/bind.h"

#define BUCKETS (LX_FUTEX_GROUPS * LX_FUTEX_GROUP_BUCKETS)
#define LOCK_CONTENDED 2 /* of the usual three-state lock; a wrong guess costs a little time only */

static struct lx_futex_bucket buckets[BUCKETS];
static uint64_t hash_key; /* (p) */
/*
 * (a) A bit for each group that is as it should be: a page of the table, which a program with few locks never touches. In a child
 * none is, since what lies there is the parent's. The release pairs with the acquire in lx_futex_bucket_of().
 */
static uint64_t ready_groups;
static struct wf_spin ready_lock;
_Static_assert(BUCKETS == 1u << (64 - 52), "lx_futex_bucket_of()");
_Static_assert(LX_FUTEX_GROUP_BUCKETS * sizeof(struct lx_futex_bucket) == WF_PAGE, "a page each");

void lx_futex_init(uint64_t key)
{
	hash_key = key | 1;
	ready_lock = (struct wf_spin){ 0 };
	ready_groups = 0;
}

static WF_NOINLINE void make_ready(size_t group)
{
	struct lx_futex_bucket *b = &buckets[group * LX_FUTEX_GROUP_BUCKETS];

	wf_spin_lock(&ready_lock);
	if (!(ready_groups >> group & 1)) {
		for (uint32_t i = 0; i < LX_FUTEX_GROUP_BUCKETS; i++) {
			b[i].lock = (struct wf_spin){ 0 };
			b[i].gather = (struct wf_gather){ 0 };
			wf_list_init(&b[i].waiters);
			wf_list_init(&b[i].exit_words);
		}
		wf_store_release(&ready_groups, ready_groups | 1ull << group);
	}
	wf_spin_unlock(&ready_lock);
}

/*
 * Two neighbouring digits of the product: nobody who does not know the key can choose addresses for one bucket, and of
 * addresses at regular distances, the usual ones, the first alone would spread them badly with one key in a few thousand.
 */
WF_INLINE uint64_t index_of(const uint32_t *addr)
{
	unsigned __int128 h = (unsigned __int128)(uintptr_t)addr * hash_key;

	return ((uint64_t)h >> 52) ^ ((uint64_t)(h >> 64) & (BUCKETS - 1));
}

WF_INLINE bool is_ready(uint64_t index)
{
	return WF_LIKELY(wf_load_acquire(&ready_groups) >> index / LX_FUTEX_GROUP_BUCKETS & 1);
}

struct lx_futex_bucket *lx_futex_bucket_of(const uint32_t *addr)
{
	uint64_t i = index_of(addr);

	if (!is_ready(i))
		make_ready(i / LX_FUTEX_GROUP_BUCKETS);
	return &buckets[i];
}

uint64_t lx_futex_group_of(const uint32_t *addr)
{
	return 1ull << (size_t)(lx_futex_bucket_of(addr) - buckets) / LX_FUTEX_GROUP_BUCKETS;
}

struct lx_futex_bucket *lx_futex_group(uint32_t i)
{
	if (!(wf_load_acquire(&ready_groups) >> i & 1))
		make_ready(i);
	return &buckets[i * LX_FUTEX_GROUP_BUCKETS];
}

void lx_futex_lock_two(struct lx_futex_bucket *a, struct lx_futex_bucket *b)
{
	wf_spin_lock(a < b ? &a->lock : &b->lock);
	if (a != b)
		wf_spin_lock(a < b ? &b->lock : &a->lock);
}

void lx_futex_unlock_two(struct lx_futex_bucket *a, struct lx_futex_bucket *b)
{
	wf_spin_unlock(&a->lock);
	if (a != b)
		wf_spin_unlock(&b->lock);
	wf_bind_wake_held();
}

void lx_futex_unlock_after_wake(struct lx_futex_bucket *b)
{
	wf_spin_unlock(&b->lock);
	wf_bind_wake_held();
}

/* As in the kernel, real-time threads come first, by their priorities; 0 for all others. */
static int rank_of(const struct lx_futex_wait *w)
{
	return w->owner->priority;
}

void lx_futex_insert(struct lx_futex_bucket *b, struct lx_futex_wait *w)
{
	struct wf_list *p = &b->waiters;
	int rank = rank_of(w);

	while (WF_UNLIKELY(rank) && p->prev != &b->waiters &&
	       rank_of(container_of(p->prev, struct lx_futex_wait, link)) < rank)
		p = p->prev;
	wf_list_insert_before(p, &w->link);
}

bool lx_futex_withdraw(struct lx_futex_wait *w)
{
	for (;;) {
		struct lx_futex_bucket *b = lx_futex_bucket_of(wf_load_acquire(&w->addr));
		bool was_in;

		wf_spin_lock(&b->lock);
		if (b != lx_futex_bucket_of(w->addr)) { /* requeued meanwhile */
			wf_spin_unlock(&b->lock);
			continue;
		}
		was_in = !wf_list_is_empty(&w->link);
		wf_list_remove(&w->link);
		wf_spin_unlock(&b->lock);
		return was_in;
	}
}

void lx_futex_unpark_owner(struct lx_futex_bucket *b, struct lx_futex_wait *w)
{
	struct wf_thread *t = &w->owner->base;

	if (WF_UNLIKELY(t->bound))
		(void)wf_bind_unpark_held(t, WF_WAKE_EVENT);
	else if (w->is_lock)
		(void)wf_gather_unpark(&b->gather, t);
	else
		(void)wf_unpark(t, WF_WAKE_EVENT);
}

uint32_t lx_futex_wake_in(struct lx_futex_bucket *b, const uint32_t *addr, uint32_t n,
			  uint32_t bitset)
{
	struct wf_list *p, *tmp;
	uint32_t woken = 0;

	wf_list_for_each_safe (p, tmp, &b->waiters) {
		struct lx_futex_wait *w = container_of(p, struct lx_futex_wait, link);

		if (woken == n)
			break;
		if (w->addr != addr || !(w->bitset & bitset) || w->is_pi || w->pi_target)
			continue;
		wf_list_remove(&w->link);
		lx_futex_unpark_owner(b, w);
		woken++;
	}
	return woken;
}

/* Apart, as the next one: what each lock goes through saves no registers for what a page of the table needs once. */
static WF_NOINLINE long first_wake(const uint32_t *addr, uint32_t n, uint32_t bitset)
{
	(void)lx_futex_bucket_of(addr);
	return lx_futex_wake(addr, n, bitset);
}

long lx_futex_wake(const uint32_t *addr, uint32_t n, uint32_t bitset)
{
	uint64_t i = index_of(addr);
	struct lx_futex_bucket *b = &buckets[i];
	uint32_t woken;

	if (!is_ready(i))
		return first_wake(addr, n, bitset);
	wf_spin_lock(&b->lock);
	woken = lx_futex_wake_in(b, addr, n, bitset);
	lx_futex_unlock_after_wake(b);
	return woken;
}

bool lx_exit_word_is(const uint32_t *addr)
{
	struct lx_futex_bucket *b = lx_futex_bucket_of(addr);
	bool found = false;
	struct wf_list *p, *tmp;

	wf_spin_lock(&b->lock);
	wf_list_for_each_safe (p, tmp, &b->exit_words)
		found |= container_of(p, struct lx_thread, exit_link)->child_tid == addr;
	wf_spin_unlock(&b->lock);
	return found;
}

void lx_exit_word_add(struct lx_thread *t)
{
	struct lx_futex_bucket *b = lx_futex_bucket_of(t->child_tid);

	wf_spin_lock(&b->lock);
	wf_list_push_tail(&b->exit_words, &t->exit_link);
	wf_spin_unlock(&b->lock);
}

void lx_exit_word_withdraw(struct lx_thread *t)
{
	struct lx_futex_bucket *b = lx_futex_bucket_of(t->child_tid);

	wf_spin_lock(&b->lock);
	wf_list_remove(&t->exit_link);
	wf_spin_unlock(&b->lock);
}

/* The thread has left its stack: clear the word and wake whoever joins, in one step for lx_exit_word_is(). */
void lx_exit_word_remove(struct lx_thread *t)
{
	struct lx_futex_bucket *b = lx_futex_bucket_of(t->child_tid);
	const uint32_t zero = 0;

	wf_spin_lock(&b->lock);
	wf_list_remove(&t->exit_link);
	(void)wf_arch_copy(t->child_tid, &zero, sizeof(zero));
	(void)lx_futex_wake_in(b, t->child_tid, ~0u, ~0u);
	lx_futex_unlock_after_wake(b);
}

void lx_futex_enqueue(struct lx_futex_bucket *b, struct lx_futex_wait *w, uint32_t *addr,
		      uint32_t bitset, bool is_pi)
{
	wf_store_release(&w->addr, addr);
	w->owner = lx_self();
	w->pi_target = NULL;
	w->bitset = bitset;
	w->is_pi = is_pi;
	w->is_lock = false;
	lx_futex_insert(b, w);
}

static WF_NOINLINE long first_wait(uint32_t *addr, uint32_t expected, uint32_t bitset,
				   int64_t deadline)
{
	(void)lx_futex_bucket_of(addr);
	return lx_futex_wait_on(addr, expected, bitset, deadline);
}

/* The word was not what the caller expected, or cannot be read. Many contend for a lock that has changed hands meanwhile. */
static long miss(struct lx_futex_bucket *b, bool is_lock, long ret)
{
	if (ret < 0)
		return ret;
	if (is_lock) {
		wf_gather_missed(&b->gather);
		wf_gather_join(&b->gather);
	}
	return -EAGAIN;
}

/* A hint, before the look that counts. */
static bool is_free_again(const uint32_t *addr)
{
	uint32_t value;

	return wf_arch_load32(addr, &value) == 0 && value != LOCK_CONTENDED;
}

long lx_futex_wait_on(uint32_t *addr, uint32_t expected, uint32_t bitset, int64_t deadline)
{
	struct lx_thread *self = lx_self();
	uint64_t i = index_of(addr);
	struct lx_futex_bucket *b = &buckets[i];
	bool is_lock = expected == LOCK_CONTENDED;
	const uint32_t flags = lx_scope_in_futex(self) ? WF_INTR | WF_REACHED : WF_INTR;

	if (!bitset)
		return -EINVAL;
	if (!is_ready(i))
		return first_wait(addr, expected, bitset, deadline);
	for (;;) {
		uint32_t value = 0;
		enum wf_reason reason;
		long ret;

		/* The bucket of a contended lock has enough to do with those that wait: no need of it if it is free again. */
		if (is_lock && is_free_again(addr))
			return miss(b, true, 0);
		wf_park_begin_before_lock(flags, WF_WAIT_FUTEX, (uint64_t)addr);
		wf_spin_lock(&b->lock);
		ret = wf_arch_load32(addr, &value);
		if (ret == 0 && value == expected) {
			lx_futex_enqueue(b, &self->futex, addr, bitset, false);
			if (is_lock) {
				self->futex.is_lock = true;
				wf_gather_waits(&b->gather);
			}
		}
		wf_spin_unlock(&b->lock);
		if (ret < 0 || value != expected) {
			(void)wf_park_abort();
			return miss(b, is_lock, ret);
		}
		reason = wf_park(deadline);
		if (reason == WF_WAKE_EVENT || !lx_futex_withdraw(&self->futex))
			return 0;
		if (reason == WF_WAKE_TIMEOUT)
			return -ETIMEDOUT;
		if (lx_signal_is_waiting(self))
			return deadline == WF_NEVER ? -ERESTARTSYS : -ERESTART_RESTARTBLOCK;
		if (WF_UNLIKELY(flags & WF_REACHED)) {
			long error = lx_scope_ended_futex(self, addr);

			if (error)
				return error;
		}
	}
}

long lx_futex_requeue(uint32_t *from, uint32_t nr_wake, uint32_t nr_move, uint32_t *to,
		      const uint32_t *expected)
{
	struct lx_futex_bucket *a = lx_futex_bucket_of(from), *b = lx_futex_bucket_of(to);
	struct wf_list *p, *tmp;
	uint32_t value = 0, woken, moved = 0;
	long ret = 0;

	lx_futex_lock_two(a, b);
	if (expected)
		ret = wf_arch_load32(from, &value);
	if (ret < 0 || (expected && value != *expected)) {
		lx_futex_unlock_two(a, b);
		return ret < 0 ? ret : -EAGAIN;
	}
	woken = lx_futex_wake_in(a, from, nr_wake, ~0u);
	wf_list_for_each_safe (p, tmp, &a->waiters) {
		struct lx_futex_wait *w = container_of(p, struct lx_futex_wait, link);

		if (moved == nr_move)
			break;
		if (w->addr != from || w->is_pi || w->pi_target)
			continue;
		if (from != to) {
			wf_list_remove(&w->link);
			wf_store_release(&w->addr, to);
			lx_futex_insert(b, w);
		}
		moved++;
	}
	lx_futex_unlock_two(a, b);
	/* both kinds return the sum, whatever futex(2) says of the older one */
	return (long)woken + (long)moved;
}
