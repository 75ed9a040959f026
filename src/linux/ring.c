// SPDX-License-Identifier: Apache-2.0
/*
 * Which waits go to a ring: those for a futex that processes share, for children, and for the disk.
 *
 * Called by: futex.c, futex_vector.c, process.c, file.c. A kernel thread that waits in the call itself is the faster
 * way, and while there are few of them not a dearer one: a ring has a kernel thread, too. So the first few wait there.
 *
 * A filter for system calls may answer one that it does not know with death. Where there is one the ring is not tried.
 */
#include "linux/ring.h"
#include "io/ring.h"
#include "linux/sigwant.h"
#include "linux/scope.h"
#include "sched/bind.h"

#include <linux/prctl.h>
#include <linux/wait.h>

#define HELD_FEW 16u
/* A longer read is made by who wants it: not all are to pay for it on the ring's kernel thread. */
#define READ_BYTES_MAX 65536u
#define FUTEX2_SHARED_U32 2

static bool is_filtered(void)
{
	static uint32_t answer; /* (a) 0: not asked yet */

	if (!wf_load_relaxed(&answer))
		wf_store_relaxed(&answer, sys1(__NR_prctl, PR_GET_SECCOMP) ? 2u : 1u);
	return wf_load_relaxed(&answer) == 2;
}

static bool is_wanted(const struct lx_thread *self, bool are_many)
{
	enum lx_ring_mode mode = wf_load_relaxed(&lx_config.ring);

	if (mode == LX_RING_NEVER || wf_is_bound(&self->base))
		return false;
	return mode == LX_RING_ALWAYS || (are_many && !is_filtered());
}

static bool is_cut_off(struct lx_thread *self, enum wf_wait kind)
{
	return kind == WF_WAIT_FUTEX ? lx_scope_ends_futex(self) : lx_scope_is_over(self);
}

static long wait_for(struct wf_ring_op *op, enum wf_wait kind, uint64_t what, int64_t deadline)
{
	struct lx_thread *self = lx_self();
	enum wf_reason reason;
	bool are_many = wf_load_relaxed(&lx.nr_held) >= HELD_FEW;
	long ret = is_wanted(self, are_many) ? wf_ring_submit(WF_RING_WAITS, op) : -ENOSYS;

	if (ret < 0)
		return ret;
	while (!wf_ring_park(op, kind, what, deadline, &reason)) {
		if (reason == WF_WAKE_INTERRUPTED && !lx_signal_is_waiting(self) &&
		    !(op->is_reached && is_cut_off(self, kind)))
			continue;
		wf_ring_cancel(op, kind, what);
		if (op->res != -ECANCELED)
			break;
		if (reason == WF_WAKE_TIMEOUT)
			return -ETIMEDOUT;
		/* Only now: a wake-up that came meanwhile would have counted, and the scope had ended nothing. */
		if (op->is_reached && kind == WF_WAIT_FUTEX && !lx_signal_is_waiting(self)) {
			ret = lx_scope_ended_futex(self, (const uint32_t *)what);
			if (ret)
				return ret;
		}
		return deadline == WF_NEVER ? -ERESTARTSYS : -ERESTART_RESTARTBLOCK;
	}
	return op->res;
}

long lx_ring_futex(uint32_t *addr, uint32_t val, uint32_t mask, int64_t deadline)
{
	struct wf_ring_op op = {
		.opcode = SYS_URING_OP_FUTEX_WAIT,
		.fd = FUTEX2_SHARED_U32,
		.addr = (uintptr_t)addr,
		.addr2 = val,
		.addr3 = mask,
		.is_reached = lx_scope_in_futex(lx_self()), /* the others are locks */
	};
	uint32_t value = 0;
	long ret = wf_arch_load32(addr, &value);

	/* Before the time is looked at; and it spares the way to the ring. */
	if (ret < 0 || value != val)
		return ret < 0 ? ret : -EAGAIN;
	ret = wait_for(&op, WF_WAIT_FUTEX, (uintptr_t)addr, deadline);
	return ret == -ECANCELED ? 0 : ret; /* the ring has ended: as woken for nothing */
}

long lx_ring_vector(const void *items, uint32_t nr, int64_t deadline)
{
	struct wf_ring_op op = {
		.opcode = SYS_URING_OP_FUTEX_WAITV,
		.addr = (uintptr_t)items,
		.len = nr,
	};
	long ret = wait_for(&op, WF_WAIT_FUTEX, (uintptr_t)items, deadline);

	if (ret == -ERESTART_RESTARTBLOCK)
		return -ERESTARTSYS;              /* the time limit is a point in time */
	return ret == -ECANCELED ? -ENOSYS : ret; /* the ring has ended */
}

long lx_ring_child(int which, int id, int options)
{
	struct wf_ring_op op = {
		.opcode = SYS_URING_OP_WAITID,
		.fd = id,
		.len = (uint32_t)which,
		.file_index = (uint32_t)(options & ~WNOHANG) | WNOWAIT,
		.is_reached = true,
	};
	long ret;

	if (options & __WNOTHREAD)
		return -ENOSYS; /* the children of a kernel thread */
	ret = wait_for(&op, WF_WAIT_CHILD, (uint64_t)id, WF_NEVER);
	if (ret == -ERESTARTSYS || ret == 0)
		return ret;
	return ret == -ECHILD ? 0 : -ENOSYS;
}

/*
 * The disk answers soon, and the kernel makes nobody wait for it in a way that a signal ends. A file that is not quite on a disk
 * (of a device, or of a server) may: then, as after any error, the call itself knows what to say.
 */
long lx_ring_read(int fd, void *buf, size_t len, int64_t at, bool is_begun)
{
	struct wf_ring_op op = {
		.opcode = SYS_URING_OP_READ,
		.fd = fd,
		.addr = (uintptr_t)buf,
		.addr2 = (uint64_t)at,
		.len = (uint32_t)len,
	};
	struct lx_thread *self = lx_self();
	enum wf_reason reason;

	if (len > READ_BYTES_MAX || at < 0 ||
	    !is_wanted(self, wf_ring_takes_reads(wf_load_relaxed(&wf_rt.nr_lazy), is_begun)) ||
	    wf_ring_submit(WF_RING_READS, &op) < 0)
		return -ENOSYS;
	while (!wf_ring_park(&op, WF_WAIT_CALL, __NR_pread64, WF_NEVER, &reason)) {
		if (lx_signal_is_waiting(self)) {
			wf_ring_cancel(&op, WF_WAIT_CALL, __NR_pread64);
			break;
		}
	}
	return op.res < 0 ? -ENOSYS : op.res;
}

bool lx_ring_has_reads(void)
{
	return wf_ring_nr_reads() || wf_load_relaxed(&lx_config.ring) == LX_RING_ALWAYS;
}

void lx_ring_end(void)
{
	wf_store_relaxed(&lx_config.ring, LX_RING_NEVER);
	wf_ring_stop();
}
