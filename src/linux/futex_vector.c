// SPDX-License-Identifier: Apache-2.0
/*
 * futex_waitv(2), and the calls that split futex(2) by operation: futex_wake, futex_wait, futex_requeue.
 *
 * A thread that waits for several words has one waiter for each; all of them name it, and any of them wakes it. Where
 * other processes may wake all words the kernel waits, in the call itself or by the ring. In a vector that has words of
 * both kinds it cannot know of the private ones: there the values of the shared ones are looked at now and then.
 */
#include "linux/call.h"
#include "linux/calls.h"
#include "linux/deadline.h"
#include "linux/futex_table.h"
#include "linux/ring.h"
#include "linux/sigwant.h"
#include "sched/clock.h"

#include <time.h>

#define SIZE_MASK 3u
#define SIZE_U32 2u
#define KNOWN_FLAGS (SIZE_MASK | FUTEX_PRIVATE_FLAG)
#define LOOK_AGAIN_NS (10 * WF_MS) /* at words that other processes may change */

/* struct futex_waitv; older kernel headers lack it. */
struct vector_item {
	uint64_t val, addr;
	uint32_t flags, reserved;
};

static bool is_private(uint32_t flags)
{
	return flags & FUTEX_PRIVATE_FLAG;
}

static long check_flags(uint32_t flags)
{
	return (flags & ~KNOWN_FLAGS) || (flags & SIZE_MASK) != SIZE_U32 ? -EINVAL : 0;
}

static long read_item(const struct vector_item *items, uint32_t i, struct vector_item *out)
{
	long ret = wf_arch_copy(out, &items[i], sizeof(*out));

	if (ret == 0 && (out->reserved || out->val >> 32))
		ret = -EINVAL;
	return ret < 0 ? ret : check_flags(out->flags);
}

static long read_timeout(const void *timeout, int clock, int64_t *out)
{
	if (!timeout)
		return 0;
	if (clock != CLOCK_MONOTONIC && clock != CLOCK_REALTIME)
		return -EINVAL;
	return lx_deadline_absolute(timeout, clock, out);
}

/* The index of the last one that a waker had taken, or -1. */
static long withdraw_all(struct lx_futex_wait *w, uint32_t n)
{
	long woken = -1;

	for (uint32_t i = 0; i < n; i++)
		if (!lx_futex_withdraw(&w[i]))
			woken = (long)i;
	return woken;
}

/* 0 with all of them queued, or the error with out_queued of them. */
static long enqueue_all(const struct vector_item *items, struct lx_futex_wait *w, uint32_t n,
			uint32_t *out_queued)
{
	for (uint32_t i = 0; i < n; i++) {
		struct vector_item item;
		struct lx_futex_bucket *b;
		uint32_t value = 0;
		long ret = read_item(items, i, &item);

		*out_queued = i;
		if (ret < 0)
			return ret;
		b = lx_futex_bucket_of((uint32_t *)item.addr);
		wf_list_init(&w[i].link);
		wf_spin_lock(&b->lock);
		ret = wf_arch_load32((uint32_t *)item.addr, &value);
		if (ret == 0 && value == (uint32_t)item.val)
			lx_futex_enqueue(b, &w[i], (uint32_t *)item.addr, ~0u, false);
		wf_spin_unlock(&b->lock);
		if (ret < 0 || value != (uint32_t)item.val)
			return ret < 0 ? ret : -EAGAIN;
	}
	*out_queued = n;
	return 0;
}

static long wait_for_any(const struct vector_item *items, struct lx_futex_wait *w, uint32_t n,
			 bool has_shared, int64_t deadline)
{
	for (;;) {
		int64_t until = has_shared ? WF_MIN(deadline, wf_now() + LOOK_AGAIN_NS) : deadline;
		uint32_t nr_queued = 0;
		enum wf_reason reason = WF_WAKE_NONE;
		long ret, woken;

		wf_park_begin(WF_INTR, WF_WAIT_FUTEX, (uint64_t)items);
		ret = enqueue_all(items, w, n, &nr_queued);
		if (ret < 0)
			(void)wf_park_abort();
		else
			reason = wf_park(until);
		woken = withdraw_all(w, nr_queued);
		if (woken >= 0)
			return woken;
		if (ret < 0)
			return ret;
		if (reason == WF_WAKE_TIMEOUT && until == deadline)
			return -ETIMEDOUT;
		if (lx_signal_is_waiting(lx_self()))
			return -ERESTARTSYS;
	}
}

/* Before the time is looked at, which the ring does not wait for; and it spares the way there. */
static long wait_by_ring(const struct vector_item *items, uint32_t n, int64_t deadline)
{
	for (uint32_t i = 0; i < n; i++) {
		struct vector_item item;
		uint32_t value = 0;
		long ret = read_item(items, i, &item);

		if (ret == 0)
			ret = wf_arch_load32((uint32_t *)item.addr, &value);
		if (ret < 0 || value != (uint32_t)item.val)
			return ret < 0 ? ret : -EAGAIN;
	}
	return lx_ring_vector(items, n, deadline);
}

long sysc_futex_waitv(struct wf_frame *f)
{
	const struct vector_item *items = (const struct vector_item *)WF_ARG0(f);
	uint32_t n = (uint32_t)WF_ARG1(f), nr_private = 0;
	int64_t deadline = WF_NEVER;
	struct lx_futex_wait *w;
	long ret;

	if (WF_ARG2(f) || !n || n > LX_FUTEX_VECTOR_MAX || !items)
		return -EINVAL;
	ret = read_timeout((const void *)WF_ARG3(f), (int)WF_ARG4(f), &deadline);
	for (uint32_t i = 0; ret == 0 && i < n; i++) {
		struct vector_item item;

		ret = read_item(items, i, &item);
		if (ret < 0)
			break;
		nr_private += is_private(item.flags);
		ret = lx_futex_check_address((uint32_t *)item.addr);
	}
	if (ret < 0)
		return ret;
	if (!nr_private) {
		ret = wait_by_ring(items, n, deadline);
		return ret == -ENOSYS ? lx_blocking(f, true) : ret;
	}
	w = wf_slab_get(&lx.futex_vectors);
	if (!w)
		return -ENOMEM;
	ret = wait_for_any(items, w, n, nr_private < n, deadline);
	wf_slab_put(&lx.futex_vectors, w);
	return ret;
}

/* Linux 6.7 brought the three calls. A kernel without them has programs use futex(): so must we. Flags that none knows tell. */
static bool kernel_lacks_them(void)
{
	static uint32_t answer; /* (a) 0: not asked yet */

	if (!wf_load_relaxed(&answer))
		wf_store_relaxed(&answer, sys4(__NR_futex_wake, 0, 0, 0, ~0u) == -ENOSYS ? 2u : 1u);
	return wf_load_relaxed(&answer) == 2;
}

long sysc_futex_wake(struct wf_frame *f)
{
	uint32_t *addr = (uint32_t *)WF_ARG0(f);
	uint32_t nr = (uint32_t)WF_ARG2(f), flags = (uint32_t)WF_ARG3(f);
	long ret = check_flags(flags), more;

	if (kernel_lacks_them())
		return -ENOSYS;
	if (ret < 0 || !WF_ARG1(f) || WF_ARG1(f) >> 32)
		return lx_raw(f);
	ret = lx_futex_check_address(addr);
	if (ret < 0 || !nr)
		return ret;
	nr = (int32_t)nr < 0 ? 1 : nr; /* as by the kernel, which counts before it compares */
	ret = lx_futex_wake(addr, nr, (uint32_t)WF_ARG1(f));
	if (is_private(flags) || (uint32_t)ret == nr)
		return ret;
	more = sys4(__NR_futex_wake, addr, WF_ARG1(f), nr - (uint32_t)ret, flags);
	return more < 0 ? more : ret + more;
}

long sysc_futex_wait(struct wf_frame *f)
{
	uint32_t *addr = (uint32_t *)WF_ARG0(f);
	uint32_t flags = (uint32_t)WF_ARG3(f);
	int64_t deadline = WF_NEVER;
	long ret;

	if (kernel_lacks_them())
		return -ENOSYS;
	if (check_flags(flags) < 0 || WF_ARG1(f) >> 32 || !WF_ARG2(f) || WF_ARG2(f) >> 32)
		return lx_raw(f);
	ret = read_timeout((const void *)WF_ARG4(f), (int)WF_ARG5(f), &deadline);
	if (ret == 0)
		ret = lx_futex_check_address(addr);
	if (ret < 0)
		return ret;
	if (!is_private(flags)) {
		ret = lx_ring_futex(addr, (uint32_t)WF_ARG1(f), (uint32_t)WF_ARG2(f), deadline);
		return ret == -ENOSYS ? lx_blocking(f, true) : ret;
	}
	return lx_futex_wait_on(addr, (uint32_t)WF_ARG1(f), (uint32_t)WF_ARG2(f), deadline);
}

long sysc_futex_requeue(struct wf_frame *f)
{
	const struct vector_item *items = (const struct vector_item *)WF_ARG0(f);
	struct vector_item from, to;
	uint32_t expected;
	long ret;

	if (kernel_lacks_them())
		return -ENOSYS;
	if (WF_ARG1(f) || !items || (int)WF_ARG2(f) < 0 || (int)WF_ARG3(f) < 0)
		return -EINVAL;
	ret = read_item(items, 0, &from);
	if (ret == 0)
		ret = read_item(items, 1, &to);
	if (ret < 0)
		return ret;
	if (!is_private(from.flags) || !is_private(to.flags))
		return lx_raw(f);
	ret = lx_futex_check_address((uint32_t *)from.addr);
	if (ret == 0)
		ret = lx_futex_check_address((uint32_t *)to.addr);
	if (ret < 0)
		return ret;
	expected = (uint32_t)from.val;
	return lx_futex_requeue((uint32_t *)from.addr, (uint32_t)WF_ARG2(f), (uint32_t)WF_ARG3(f),
				(uint32_t *)to.addr, &expected);
}
