// SPDX-License-Identifier: Apache-2.0
/*
 * The clock without a system call: the vDSO's, marked so that a kick does not take it for the program's call.
 *
 * Called by: linux/, for every deadline. Invariant: while in_clock is set the kernel thread stays the same,
 * for only a kick could change it, and that one defers.
 */
#include "sched/clock.h"
#include "sched/runtime.h"

long (*wf_clock_vdso)(int clock, struct __kernel_timespec *out);

int64_t wf_now(void)
{
	struct wf_kthread *k = wf_self_kthread();
	struct __kernel_timespec ts;
	long ret;

	if (!k || !wf_clock_vdso)
		return sys_now();
	wf_store_relaxed(&k->in_clock, true);
	__atomic_signal_fence(__ATOMIC_SEQ_CST); /* the handler runs on this very kernel thread */
	ret = wf_clock_vdso(1 /* CLOCK_MONOTONIC */, &ts);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	wf_store_relaxed(&k->in_clock, false);
	return ret == 0 ? ts.tv_sec * WF_SEC + ts.tv_nsec : sys_now();
}
