// SPDX-License-Identifier: Apache-2.0
/*
 * futex(2): waiters in a hash table keyed by address.
 *
 * Called by: every lock of libc, pthread_join (through the exit word), and programs that use futexes raw.
 *
 * Invariant: a waiter is in at most one bucket, the one of its addr. Whoever takes it out, under the bucket's
 * lock, owns its wake-up; the waiter decides by "am I still in?" whether it was woken, so a wake that races
 * with a timeout or a signal is never swallowed. Wakers unpark under the lock: a waiter that returns for
 * another reason first takes the lock, hence no waker still holds a pointer to it.
 *
 * A shared futex may be woken by another process: such a wait is the kernel's, in the call itself or by the ring. The
 * exception is the word that exit clears: libc joins through a shared wait on it, and only we ever wake it.
 * It is recognised by address, never by value: libc 2.42 moved it away from the tid.
 */
#include "linux/futex_table.h"
#include "linux/calls.h"
#include "linux/ring.h"
#include "sched/bind.h"

#define BUCKETS (LX_FUTEX_GROUPS * LX_FUTEX_GROUP_BUCKETS)
#define FUTEX_CMD (~(uint32_t)(FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME))
#define LOCK_CONTENDED 2 /* of the usual three-state lock; a wrong guess costs a little time only */
#define USER_END ((1ul << 47) - WF_PAGE) /* where the kernel's access_ok() ends */

static struct lx_futex_bucket buckets[BUCKETS];
static uint64_t hash_key; /* (p) */
_Static_assert(BUCKETS == 1u << (64 - 52), "lx_futex_bucket_of()");

void lx_futex_init(uint64_t key)
{
	hash_key = key | 1;
	for (uint32_t i = 0; i < BUCKETS; i++) {
		buckets[i].lock = (struct wf_spin){ 0 };
		/* in a child its worker is the parent's */
		buckets[i].gather = (struct wf_gather){ 0 };
		wf_list_init(&buckets[i].waiters);
		wf_list_init(&buckets[i].exit_words);
	}
}

/*
 * Two neighbouring digits of the product: nobody who does not know the key can choose addresses for one bucket, and of
 * addresses at regular distances, the usual ones, the first alone would spread them badly with one key in a few thousand.
 */
struct lx_futex_bucket *lx_futex_bucket_of(const uint32_t *addr)
{
	unsigned __int128 h = (unsigned __int128)(uintptr_t)addr * hash_key;

	return &buckets[((uint64_t)h >> 52) ^ ((uint64_t)(h >> 64) & (BUCKETS - 1))];
}

uint64_t lx_futex_group_of(const uint32_t *addr)
{
	return 1ull << (size_t)(lx_futex_bucket_of(addr) - buckets) / LX_FUTEX_GROUP_BUCKETS;
}

struct lx_futex_bucket *lx_futex_group(uint32_t i)
{
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

uint32_t lx_futex_wake(const uint32_t *addr, uint32_t n, uint32_t bitset)
{
	struct lx_futex_bucket *b = lx_futex_bucket_of(addr);
	uint32_t woken;

	wf_spin_lock(&b->lock);
	woken = lx_futex_wake_in(b, addr, n, bitset);
	lx_futex_unlock_after_wake(b);
	return woken;
}

static bool is_exit_word(const uint32_t *addr)
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

/* The thread has left its stack: clear the word and wake whoever joins, in one step for is_exit_word(). */
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

long lx_futex_wait_on(uint32_t *addr, uint32_t expected, uint32_t bitset, int64_t deadline)
{
	struct lx_thread *self = lx_self();
	struct lx_futex_bucket *b = lx_futex_bucket_of(addr);
	bool is_lock = expected == LOCK_CONTENDED;

	if (!bitset)
		return -EINVAL;
	for (;;) {
		uint32_t value = 0;
		enum wf_reason reason;
		long ret;

		wf_park_begin_before_lock(WF_INTR, WF_WAIT_FUTEX, (uint64_t)addr);
		wf_spin_lock(&b->lock);
		ret = wf_arch_load32(addr, &value);
		if (ret == 0 && value == expected) {
			lx_futex_enqueue(b, &self->futex, addr, bitset, false);
			if (is_lock) {
				self->futex.is_lock = true;
				wf_gather_waits(&b->gather);
			}
		} else if (is_lock) {
			wf_gather_missed(&b->gather);
		}
		wf_spin_unlock(&b->lock);
		if (ret < 0 || value != expected) {
			(void)wf_park_abort();
			if (is_lock)
				wf_gather_join(&b->gather);
			return ret < 0 ? ret : -EAGAIN;
		}
		reason = wf_park(deadline);
		if (reason == WF_WAKE_EVENT || !lx_futex_withdraw(&self->futex))
			return 0;
		if (reason == WF_WAKE_TIMEOUT)
			return -ETIMEDOUT;
		if (lx_signal_is_waiting(self))
			return deadline == WF_NEVER ? -ERESTARTSYS : -ERESTART_RESTARTBLOCK;
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

/* FUTEX_WAKE_OP: *to = *to OP arg, and the old value compared; see futex(2). */
static long modify(uint32_t *addr, uint32_t encoded, bool *out_hit)
{
	int op = (int)(encoded >> 28 & 7), cmp = (int)(encoded >> 24 & 15);
	int oparg = (int)(encoded << 8) >> 20, cmparg = (int)(encoded << 20) >> 20;
	uint32_t old = 0, seen, fresh;
	int v;
	long ret;

	if (encoded >> 28 & 8)
		oparg = 1 << (oparg & 31);
	ret = wf_arch_load32(addr, &old);
	for (;;) {
		if (ret < 0)
			return ret;
		switch (op) {
		case FUTEX_OP_SET:
			fresh = (uint32_t)oparg;
			break;
		case FUTEX_OP_ADD:
			fresh = old + (uint32_t)oparg;
			break;
		case FUTEX_OP_OR:
			fresh = old | (uint32_t)oparg;
			break;
		case FUTEX_OP_ANDN:
			fresh = old & ~(uint32_t)oparg;
			break;
		case FUTEX_OP_XOR:
			fresh = old ^ (uint32_t)oparg;
			break;
		default:
			return -ENOSYS;
		}
		seen = old;
		ret = wf_arch_cas32(addr, &seen, fresh);
		if (ret == 0 && seen == old)
			break;
		old = seen;
	}
	v = (int)old;
	switch (cmp) {
	case FUTEX_OP_CMP_EQ:
		*out_hit = v == cmparg;
		return 0;
	case FUTEX_OP_CMP_NE:
		*out_hit = v != cmparg;
		return 0;
	case FUTEX_OP_CMP_LT:
		*out_hit = v < cmparg;
		return 0;
	case FUTEX_OP_CMP_GE:
		*out_hit = v >= cmparg;
		return 0;
	case FUTEX_OP_CMP_LE:
		*out_hit = v <= cmparg;
		return 0;
	case FUTEX_OP_CMP_GT:
		*out_hit = v > cmparg;
		return 0;
	}
	return -ENOSYS;
}

static long wake_op(uint32_t *addr, uint32_t nr, uint32_t *addr2, uint32_t nr2, uint32_t encoded)
{
	struct lx_futex_bucket *a = lx_futex_bucket_of(addr), *b = lx_futex_bucket_of(addr2);
	bool hit = false;
	long ret;

	lx_futex_lock_two(a, b);
	ret = modify(addr2, encoded, &hit);
	if (ret == 0) {
		ret = (long)lx_futex_wake_in(a, addr, nr, ~0u);
		if (hit)
			ret += (long)lx_futex_wake_in(b, addr2, nr2, ~0u);
	}
	lx_futex_unlock_two(a, b);
	return ret;
}

static long wait_shared(struct wf_frame *f, uint32_t val, uint32_t mask, int64_t deadline)
{
	long ret = mask ? lx_ring_futex((uint32_t *)WF_ARG0(f), val, mask, deadline) : -ENOSYS;
	long args[6] = { (long)WF_ARG0(f), (long)WF_ARG1(f), (long)WF_ARG2(f),
			 (long)WF_ARG3(f), (long)WF_ARG4(f), (long)WF_ARG5(f) };

	if (ret != -ENOSYS)
		return ret;
	/* as the kernel: a wait with a time is not made again after a handler */
	return lx_blocking_call(__NR_futex, args, true,
				args[3] ? LX_RESTART_NEVER : LX_RESTART_SYS);
}

long lx_futex_check_address(const uint32_t *addr)
{
	if ((uintptr_t)addr & 3)
		return -EINVAL;
	return (uintptr_t)addr < USER_END ? 0 : -EFAULT;
}

/* How many FUTEX_WAKE wakes: the kernel counts before it compares, so 0 and less mean 1. */
static uint32_t wake_count(uint32_t val)
{
	return (int32_t)val < 1 ? 1 : val;
}

/* Looked at first, as the kernel does: a bad timeout, and a clock for an operation that has none. */
static long read_deadline(uint32_t op, const void *timeout, int64_t *out)
{
	uint32_t cmd = op & FUTEX_CMD;
	int clock = op & FUTEX_CLOCK_REALTIME ? 0 : 1;
	bool is_clocked = cmd == FUTEX_WAIT_BITSET || cmd == FUTEX_LOCK_PI2 ||
			  cmd == FUTEX_WAIT_REQUEUE_PI;
	long ret = cmd > FUTEX_LOCK_PI2 ? -ENOSYS : 0;

	if (timeout && cmd == FUTEX_WAIT)
		ret = lx_deadline_relative(timeout, out);
	else if (timeout && cmd == FUTEX_LOCK_PI)
		ret = lx_deadline_absolute(timeout, 0, out);
	else if (timeout && is_clocked)
		ret = lx_deadline_absolute(timeout, clock, out);
	return ret == 0 && clock == 0 && !is_clocked ? -ENOSYS : ret;
}

static WF_NOINLINE long any_operation(struct wf_frame *f)
{
	uint32_t *addr = (uint32_t *)WF_ARG0(f), *addr2 = (uint32_t *)WF_ARG4(f);
	uint32_t op = (uint32_t)WF_ARG1(f), val = (uint32_t)WF_ARG2(f);
	uint32_t val2 = (uint32_t)WF_ARG3(f), val3 = (uint32_t)WF_ARG5(f);
	const void *timeout = (const void *)WF_ARG3(f);
	bool is_shared = !(op & FUTEX_PRIVATE_FLAG);
	int64_t deadline = WF_NEVER;
	uint32_t cmd = op & FUTEX_CMD;
	long ret = read_deadline(op, timeout, &deadline);

	if (ret == 0)
		ret = lx_futex_check_address(addr);
	if (ret < 0)
		return ret;
	switch (cmd) {
	case FUTEX_WAIT:
	case FUTEX_WAIT_BITSET:
		val3 = cmd == FUTEX_WAIT ? ~0u : val3;
		if (is_shared && !is_exit_word(addr))
			return wait_shared(f, val, val3, deadline);
		return lx_futex_wait_on(addr, val, val3, deadline);
	case FUTEX_WAKE:
	case FUTEX_WAKE_BITSET:
		if (cmd == FUTEX_WAKE_BITSET && !val3)
			return -EINVAL;
		val = wake_count(val);
		ret = (long)lx_futex_wake(addr, val, cmd == FUTEX_WAKE ? ~0u : val3);
		/* Waiters of other processes; those that share our memory wait in private, too. */
		if ((is_shared || wf_load_relaxed(&lx.has_vm_child)) && (uint32_t)ret < val) {
			long more = sys6(__NR_futex, addr, op, val - (uint32_t)ret, 0, 0, val3);

			return more < 0 ? more : ret + more;
		}
		return ret;
	case FUTEX_REQUEUE:
	case FUTEX_CMP_REQUEUE:
		if (is_shared)
			return lx_raw(f);
		if ((int)val < 0 || (int)val2 < 0)
			return -EINVAL;
		ret = lx_futex_check_address(addr2);
		if (ret < 0)
			return ret;
		return lx_futex_requeue(addr, val, val2, addr2,
					cmd == FUTEX_CMP_REQUEUE ? &val3 : NULL);
	case FUTEX_WAKE_OP:
		if (is_shared)
			return lx_raw(f);
		ret = lx_futex_check_address(addr2);
		if (ret < 0)
			return ret;
		return wake_op(addr, wake_count(val), addr2, wake_count(val2), val3);
	case FUTEX_LOCK_PI:
	case FUTEX_LOCK_PI2:
		return lx_futex_lock_pi(addr, deadline, false, is_shared);
	case FUTEX_TRYLOCK_PI:
		return lx_futex_lock_pi(addr, WF_NEVER, true, is_shared);
	case FUTEX_UNLOCK_PI:
		return lx_futex_unlock_pi(addr, is_shared);
	case FUTEX_WAIT_REQUEUE_PI:
		ret = lx_futex_check_address(addr2);
		if (ret < 0)
			return ret;
		return lx_futex_wait_requeue_pi(addr, val, deadline, addr2);
	case FUTEX_CMP_REQUEUE_PI:
		ret = lx_futex_check_address(addr2);
		if (ret < 0)
			return ret;
		return lx_futex_requeue_pi(addr, val, val2, addr2, val3);
	default:
		return -ENOSYS;
	}
}

/* What nearly every lock does, first and the wait as a tail call: each frame on a parked thread's stack is a cache line or two. */
long sysc_futex(struct wf_frame *f)
{
	uint32_t *addr = (uint32_t *)WF_ARG0(f);
	uint32_t op = (uint32_t)WF_ARG1(f) & ~(uint32_t)FUTEX_CLOCK_REALTIME;

	if (lx_futex_check_address(addr) < 0)
		return any_operation(f);
	if (WF_ARG1(f) == FUTEX_WAKE_PRIVATE && !wf_load_relaxed(&lx.has_vm_child))
		return (long)lx_futex_wake(addr, wake_count((uint32_t)WF_ARG2(f)), ~0u);
	if (!WF_ARG3(f)) {
		if (op == FUTEX_WAIT_BITSET_PRIVATE)
			return lx_futex_wait_on(addr, (uint32_t)WF_ARG2(f), (uint32_t)WF_ARG5(f),
						WF_NEVER);
		if (WF_ARG1(f) == FUTEX_WAIT_PRIVATE)
			return lx_futex_wait_on(addr, (uint32_t)WF_ARG2(f), ~0u, WF_NEVER);
	}
	return any_operation(f);
}
