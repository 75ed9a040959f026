// SPDX-License-Identifier: Apache-2.0
/*
 * futex(2): its operations, on the waiters of futex_table.c.
 *
 * Called by: every lock of libc, pthread_join (through the exit word), and programs that use futexes raw.
 *
 * A shared futex may be woken by another process: such a wait is the kernel's, in the call itself or by the ring. The
 * exception is the word that exit clears: libc joins through a shared wait on it, and only we ever wake it.
 * It is recognised by address, never by value: libc 2.42 moved it away from the tid.
 */
#include "linux/call.h"
#include "linux/calls.h"
#include "linux/deadline.h"
#include "linux/futex_pi.h"
#include "linux/futex_table.h"
#include "linux/ring.h"
#include "linux/scope.h"

#define FUTEX_CMD (~(uint32_t)(FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME))

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

/*
 * Invariant (a wake-up that the kernel has counted is not lost, nor is the end of a scope): a scope has ended such a wait only
 * if the kernel says that nothing has woken it, which is -EINTR of the call, or -ECANCELED of the ring's; a result of 0 is
 * returned, however long the scope is over. The end is looked for behind the store that announces the wait (in_call, or the
 * state of a thread that parks; sched/scope.h), and each time that the call or the wait begins anew. A waker that
 * has changed the word first, as those of libc's waits that are ended do, is not missed between two calls: the kernel compares again.
 */
static long wait_shared(struct wf_frame *f, uint32_t val, uint32_t mask, int64_t deadline)
{
	struct lx_thread *self = lx_self();
	long ret = mask ? lx_ring_futex((uint32_t *)WF_ARG0(f), val, mask, deadline) : -ENOSYS;
	long args[6] = { (long)WF_ARG0(f), (long)WF_ARG1(f), (long)WF_ARG2(f),
			 (long)WF_ARG3(f), (long)WF_ARG4(f), (long)WF_ARG5(f) };

	if (ret != -ENOSYS)
		return ret;
	/* as the kernel: a wait with a time is made again only if another thread takes the signal */
	ret = lx_blocking_call(__NR_futex, args, true,
			       args[3] ? LX_RESTART_NOHAND : LX_RESTART_SYS);
	if ((ret == -ERESTARTSYS || ret == -ERESTARTNOHAND) && lx_scope_in_futex(self) &&
	    !lx_signal_is_waiting(self)) {
		long error = lx_scope_ended_futex(self, (const uint32_t *)WF_ARG0(f));

		return error ? error : ret;
	}
	return ret;
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
		if (is_shared && !lx_exit_word_is(addr))
			return wait_shared(f, val, val3, deadline);
		return lx_futex_wait_on(addr, val, val3, deadline);
	case FUTEX_WAKE:
	case FUTEX_WAKE_BITSET:
		if (cmd == FUTEX_WAKE_BITSET && !val3)
			return -EINVAL;
		val = wake_count(val);
		ret = lx_futex_wake(addr, val, cmd == FUTEX_WAKE ? ~0u : val3);
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

static WF_NOINLINE long scoped_operation(struct wf_frame *f)
{
	long ret;

	if (!lx_scope_reaches_futex(f))
		return any_operation(f);
	lx_scope_begin_futex(f);
	ret = any_operation(f);
	lx_scope_end_futex();
	return ret;
}

/* Nearly every lock does this: first, the wait as a tail call. Each frame on a parked thread's stack is a cache line or two. */
long sysc_futex(struct wf_frame *f)
{
	uint32_t *addr = (uint32_t *)WF_ARG0(f);
	uint32_t op = (uint32_t)WF_ARG1(f) & ~(uint32_t)FUTEX_CLOCK_REALTIME;

	if (WF_UNLIKELY(wf_self()->scopes != NULL))
		return scoped_operation(f);
	if (lx_futex_check_address(addr) < 0)
		return any_operation(f);
	if (WF_ARG1(f) == FUTEX_WAKE_PRIVATE && !wf_load_relaxed(&lx.has_vm_child))
		return lx_futex_wake(addr, wake_count((uint32_t)WF_ARG2(f)), ~0u);
	if (!WF_ARG3(f)) {
		if (op == FUTEX_WAIT_BITSET_PRIVATE)
			return lx_futex_wait_on(addr, (uint32_t)WF_ARG2(f), (uint32_t)WF_ARG5(f),
						WF_NEVER);
		if (WF_ARG1(f) == FUTEX_WAIT_PRIVATE)
			return lx_futex_wait_on(addr, (uint32_t)WF_ARG2(f), ~0u, WF_NEVER);
	}
	return any_operation(f);
}
