// SPDX-License-Identifier: Apache-2.0
/*
 * futex(2): locks with priority inheritance, and waits that end in owning one.
 *
 * Without kernel priorities to lend, what remains is the ownership protocol. The word holds the owner's tid; an
 * unlock with waiters hands the word to the oldest.
 *
 * Invariant: who waits found an owner that had not ended after it had noted in that one's pi_groups where it waits; who
 * ends is found by nobody any more, and then looks there. tests/model/pi_locks.c plays it.
 */
#include "linux/call.h"
#include "linux/futex_pi.h"
#include "linux/futex_table.h"
#include "linux/sigwant.h"
#include "sched/clock.h"

#define TID_MASK 0x3fffffffu
#define WAITERS 0x80000000u
#define OWNER_DIED 0x40000000u
#define NATIVE_LOOK_NS WF_MS

static struct lx_futex_wait *first_pi_waiter(struct lx_futex_bucket *b, const uint32_t *addr,
					     bool *out_more)
{
	struct lx_futex_wait *first = NULL;
	struct wf_list *p, *tmp;

	*out_more = false;
	wf_list_for_each_safe (p, tmp, &b->waiters) {
		struct lx_futex_wait *w = container_of(p, struct lx_futex_wait, link);

		if (w->addr != addr || !w->is_pi)
			continue;
		if (first)
			*out_more = true;
		else
			first = w;
	}
	return first;
}

/* addr is t's, and somebody waits for it. */
static void note_waited_for(struct lx_thread *t, const uint32_t *addr)
{
	(void)wf_fetch_or(&t->pi_groups, lx_futex_group_of(addr));
}

/* Under the bucket's lock: give the word to the first waiter, or clear it; bits are kept in the word. */
static long give(struct lx_futex_bucket *b, uint32_t *addr, uint32_t bits)
{
	bool more;
	struct lx_futex_wait *w = first_pi_waiter(b, addr, &more);
	uint32_t fresh = bits | (w ? lx_tid(w->owner) : 0) | (more ? WAITERS : 0);
	long ret = wf_arch_copy(addr, &fresh, sizeof(fresh));

	if (ret == 0 && w) {
		if (more)
			note_waited_for(w->owner, addr);
		wf_list_remove(&w->link);
		lx_futex_unpark_owner(b, w);
	}
	return ret;
}

/* The same under no lock. */
static long hand_over(uint32_t *addr, uint32_t bits)
{
	struct lx_futex_bucket *b = lx_futex_bucket_of(addr);
	long ret;

	wf_spin_lock(&b->lock);
	ret = give(b, addr, bits);
	lx_futex_unlock_after_wake(b);
	return ret;
}

/*
 * The owner of the word, by its *value. 1: a thread that has not ended; when it does, it looks where it is waited for. 0: it
 * had unlocked before it ended; *value is what the word says now. -ESRCH: it ended as the owner.
 */
static long find_owner(uint32_t *addr, uint32_t *value)
{
	const uint32_t tid = *value & TID_MASK;
	struct lx_thread *owner = lx_by_tid(tid);
	uint32_t before = *value;
	long ret;

	if (owner) {
		note_waited_for(owner, addr);
		if (lx_by_tid(tid) == owner)
			return 1;
	}
	ret = wf_arch_load32(addr, value);
	if (ret < 0)
		return ret;
	return *value == before ? -ESRCH : 0;
}

/*
 * Under the bucket's lock: make the word t's, or mark that somebody waits for it. 1: it is t's; 0: it is
 * somebody else's. more: others wait, too.
 */
static long own_or_mark(uint32_t *addr, struct lx_thread *t, bool more)
{
	uint32_t value = 0, seen, fresh;
	long ret = wf_arch_load32(addr, &value);

	while (ret >= 0) {
		uint32_t owner = value & TID_MASK;

		if (owner && owner == lx_tid(t))
			return -EDEADLK;
		if (owner) {
			ret = find_owner(addr, &value);
			if (ret != 1)
				continue;
			fresh = value | WAITERS;
		} else {
			fresh = (value & (WAITERS | OWNER_DIED)) | lx_tid(t) | (more ? WAITERS : 0);
			if (more)
				note_waited_for(t, addr);
		}
		seen = value;
		ret = wf_arch_cas32(addr, &seen, fresh);
		if (ret == 0 && seen == value)
			return !owner;
		value = seen; /* the word changed under our eyes */
	}
	return ret;
}

/* Under the bucket's lock: a waiter for a word of the thread tid. */
static struct lx_futex_wait *orphan_in(struct lx_futex_bucket *b, uint32_t tid)
{
	struct wf_list *p, *tmp;

	wf_list_for_each_safe (p, tmp, &b->waiters) {
		struct lx_futex_wait *w = container_of(p, struct lx_futex_wait, link);
		uint32_t value = 0;

		if (w->is_pi && wf_arch_load32(w->addr, &value) == 0 && (value & TID_MASK) == tid)
			return w;
	}
	return NULL;
}

/* As in the kernel, whoever waits for it gets a lock of the dead, also one that is in no list of robust locks. */
void lx_futex_thread_ended(struct lx_thread *t)
{
	uint64_t groups = wf_exchange(&t->pi_groups, 0ull);

	for (; groups; groups &= groups - 1) {
		struct lx_futex_bucket *b = lx_futex_group((uint32_t)__builtin_ctzll(groups));

		for (uint32_t i = 0; i < LX_FUTEX_GROUP_BUCKETS; i++, b++) {
			struct lx_futex_wait *w;

			wf_spin_lock(&b->lock);
			while ((w = orphan_in(b, lx_tid(t))))
				if (give(b, w->addr, OWNER_DIED) < 0)
					break;
			lx_futex_unlock_after_wake(b);
		}
	}
}

static bool is_foreign(uint32_t owner)
{
	return owner && !lx_by_tid(owner) && !wf_thread_is_our_tid(owner);
}

static void wake_foreign(uint32_t *addr)
{
	(void)sys3(__NR_futex, addr, FUTEX_WAKE, INT32_MAX);
}

/*
 * The owner is known to the kernel, which hands such a lock on and refuses that (-EINVAL, which libc takes for fatal)
 * where it finds a waiter of another kind. So we leave no trace, and look again after a while.
 */
static long wait_for_native(uint32_t *addr, uint32_t value, int64_t deadline)
{
	int64_t until = WF_MIN(deadline, wf_now() + NATIVE_LOOK_NS);
	uint32_t now = value;

	if (sys2(__NR_kill, value & TID_MASK, 0) == -ESRCH) {
		long ret = wf_arch_load32(addr, &now);

		return ret < 0 ? ret : now == value ? -ESRCH : 0;
	}
	wf_park_begin(WF_INTR, WF_WAIT_FUTEX, (uint64_t)addr);
	if (wf_park(until) == WF_WAKE_TIMEOUT)
		return until == deadline ? -ETIMEDOUT : 0;
	return lx_signal_is_waiting(lx_self()) ? -ERESTARTNOINTR : 0;
}

/*
 * The owner is another process's, perhaps under weft, too: an unlock there wakes all who wait here, for each to
 * mark the word again. 0: look again; else what the call returns.
 */
static long wait_for_foreign(uint32_t *addr, int64_t deadline, bool is_try)
{
	uint32_t value = 0, seen;
	struct __kernel_timespec ts;
	long ret = wf_arch_load32(addr, &value), args[6];

	if (ret < 0)
		return ret;
	if (!is_foreign(value & TID_MASK)) /* ours and dead, or changed meanwhile */
		return wf_thread_is_our_tid(value & TID_MASK) && !lx_by_tid(value & TID_MASK)
			       ? -ESRCH
			       : 0;
	if (is_try)
		return -EWOULDBLOCK;
	if ((value & TID_MASK) < WF_TID_BASE)
		return wait_for_native(addr, value, deadline);
	seen = value;
	ret = wf_arch_cas32(addr, &seen, value | WAITERS);
	if (ret < 0 || seen != value)
		return ret;
	ts = (struct __kernel_timespec){ deadline / WF_SEC, deadline % WF_SEC };
	args[0] = (long)addr;
	args[1] = FUTEX_WAIT_BITSET;
	args[2] = (long)(value | WAITERS);
	args[3] = deadline == WF_NEVER ? 0 : (long)&ts;
	args[4] = 0;
	args[5] = (long)FUTEX_BITSET_MATCH_ANY;
	ret = lx_blocking_call(__NR_futex, args, true, LX_RESTART_SYS);
	if (ret == -ETIMEDOUT)
		return ret;
	return ret == -ERESTARTSYS ? -ERESTARTNOINTR : 0;
}

long lx_futex_lock_pi(uint32_t *addr, int64_t deadline, bool is_try, bool is_shared)
{
	struct lx_thread *self = lx_self();
	struct lx_futex_bucket *b = lx_futex_bucket_of(addr);

	for (;;) {
		enum wf_reason reason;
		long ret;

		wf_park_begin_before_lock(WF_INTR, WF_WAIT_FUTEX, (uint64_t)addr);
		wf_spin_lock(&b->lock);
		ret = own_or_mark(addr, self,
				  false); /* marked by who only tries, too, as by the kernel */
		if (ret == 0 && !is_try)
			lx_futex_enqueue(b, &self->futex, addr, ~0u, true);
		wf_spin_unlock(&b->lock);
		if (ret != 0 || is_try) {
			(void)wf_park_abort();
			if (ret == -ESRCH && is_shared) {
				ret = wait_for_foreign(addr, deadline, is_try);
				if (ret == 0)
					continue;
				return ret;
			}
			return ret == 0 ? -EWOULDBLOCK : WF_MIN(ret, 0l);
		}
		reason = wf_park(deadline);
		if (reason == WF_WAKE_EVENT || !lx_futex_withdraw(&self->futex))
			return 0; /* the word is ours */
		if (reason == WF_WAKE_TIMEOUT)
			return -ETIMEDOUT;
		if (lx_signal_is_waiting(self))
			return -ERESTARTNOINTR;
	}
}

long lx_futex_wait_requeue_pi(uint32_t *addr, uint32_t expected, int64_t deadline, uint32_t *target)
{
	struct lx_thread *self = lx_self();
	struct lx_futex_bucket *b = lx_futex_bucket_of(addr);

	if (addr == target)
		return -EINVAL;
	for (;;) {
		uint32_t value = 0;
		enum wf_reason reason;
		long ret;

		wf_park_begin_before_lock(WF_INTR, WF_WAIT_FUTEX, (uint64_t)addr);
		wf_spin_lock(&b->lock);
		ret = wf_arch_load32(addr, &value);
		if (ret == 0 && value == expected) {
			lx_futex_enqueue(b, &self->futex, addr, ~0u, false);
			self->futex.pi_target = target;
		}
		wf_spin_unlock(&b->lock);
		if (ret < 0 || value != expected) {
			(void)wf_park_abort();
			return ret < 0 ? ret : -EAGAIN;
		}
		reason = wf_park(deadline);
		if (reason == WF_WAKE_EVENT || !lx_futex_withdraw(&self->futex))
			return 0; /* the target is ours */
		if (reason == WF_WAKE_TIMEOUT)
			return -ETIMEDOUT;
		/* Once moved, a second look at the first word would only find it changed. */
		if (lx_signal_is_waiting(self))
			return self->futex.is_pi ? -EWOULDBLOCK : -ERESTARTNOINTR;
		if (self->futex.is_pi)
			return lx_futex_lock_pi(target, deadline, false, false);
	}
}

/* Under both locks: the first waiter gets the target if it is free, the others wait for it. */
static long move_to_pi(struct lx_futex_bucket *a, struct lx_futex_bucket *b, uint32_t *from,
		       uint32_t *to, uint32_t nr_move)
{
	struct wf_list *p, *tmp;
	uint32_t moved = 0;
	bool is_first = true;

	wf_list_for_each_safe (p, tmp, &a->waiters) {
		struct lx_futex_wait *w = container_of(p, struct lx_futex_wait, link);

		if (w->addr != from || w->is_pi)
			continue;
		if (moved > nr_move)
			break;
		if (w->pi_target != to)
			return -EINVAL;
		if (is_first) {
			long ret = own_or_mark(to, w->owner, nr_move > 0);

			if (ret < 0)
				return ret;
			is_first = false;
			moved++;
			if (ret == 1) {
				wf_list_remove(&w->link);
				lx_futex_unpark_owner(a, w);
				continue;
			}
		} else {
			moved++;
		}
		wf_list_remove(&w->link);
		wf_store_release(&w->addr, to);
		w->is_pi = true;
		lx_futex_insert(b, w);
	}
	return (long)moved;
}

long lx_futex_requeue_pi(uint32_t *from, uint32_t nr_wake, uint32_t nr_move, uint32_t *to,
			 uint32_t expected)
{
	struct lx_futex_bucket *a = lx_futex_bucket_of(from), *b = lx_futex_bucket_of(to);
	uint32_t value = 0;
	long ret;

	if (nr_wake != 1 || (int32_t)nr_move < 0 || from == to)
		return -EINVAL;
	lx_futex_lock_two(a, b);
	ret = wf_arch_load32(from, &value);
	if (ret == 0)
		ret = value == expected ? move_to_pi(a, b, from, to, nr_move) : -EAGAIN;
	lx_futex_unlock_two(a, b);
	return ret;
}

long lx_futex_unlock_pi(uint32_t *addr, bool is_shared)
{
	uint32_t value = 0;
	long ret = wf_arch_load32(addr, &value);

	if (ret < 0)
		return ret;
	if ((value & TID_MASK) != lx_tid(lx_self()))
		return -EPERM;
	ret = hand_over(addr, 0);
	if (is_shared)
		wake_foreign(addr);
	return ret;
}

static void wake_one(uint32_t *addr)
{
	(void)lx_futex_wake(addr, 1, ~0u);
	(void)sys3(__NR_futex, addr, FUTEX_WAKE, 1); /* waiters of other processes */
}

void lx_futex_owner_died(uint32_t *addr, bool is_pi, bool is_pending, uint32_t tid)
{
	uint32_t value = 0, seen;
	long ret = wf_arch_load32(addr, &value);

	for (;;) {
		if (ret < 0)
			return;
		if ((value & TID_MASK) != tid) {
			if (is_pending && !is_pi && !(value & TID_MASK))
				wake_one(addr);
			return;
		}
		if (is_pi && (value & WAITERS)) {
			(void)hand_over(addr, OWNER_DIED);
			wake_foreign(addr);
			return;
		}
		seen = value;
		ret = wf_arch_cas32(addr, &seen, (value & WAITERS) | OWNER_DIED);
		if (ret == 0 && seen == value)
			break;
		value = seen;
	}
	if (value & WAITERS)
		wake_one(addr);
}
