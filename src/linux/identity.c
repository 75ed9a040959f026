// SPDX-License-Identifier: Apache-2.0
/*
 * What Linux keeps per thread and a program can ask for: scheduling policy, affinity, name, priority.
 *
 * Kept per weft thread and validated as the kernel does; a tid of another process goes to the kernel.
 */
#include "linux/abi.h"
#include "linux/calls.h"

#include <linux/prctl.h>
#include <linux/sched.h>

#define MADV_DONTNEED 4

/* The thread of ours that a tid argument names; *out_foreign when it is another process's. */
static struct lx_thread *named(uint32_t tid, bool *out_foreign)
{
	struct lx_thread *t = lx_by_tid(tid);

	*out_foreign = !t && tid < WF_TID_BASE;
	return t;
}

static bool is_realtime(uint32_t policy)
{
	return policy == SCHED_FIFO || policy == SCHED_RR;
}

static long check_policy(uint32_t policy, int priority)
{
	policy &= ~(uint32_t)SCHED_RESET_ON_FORK;
	if (policy != SCHED_NORMAL && policy != SCHED_BATCH && policy != SCHED_IDLE &&
	    !is_realtime(policy))
		return -EINVAL;
	if (is_realtime(policy) ? priority < 1 || priority > 99 : priority != 0)
		return -EINVAL;
	return 0;
}

/* May we have a real-time policy at all? Ask the kernel for it on this kernel thread, and give it back. */
static long may_be_realtime(uint32_t policy, int priority)
{
	int zero = 0;
	long ret = sys3(__NR_sched_setscheduler, 0, policy, &priority);

	if (ret == 0)
		(void)sys3(__NR_sched_setscheduler, 0, SCHED_NORMAL, &zero);
	return ret;
}

static long set_policy(struct lx_thread *t, uint32_t policy, int priority)
{
	long ret = check_policy(policy, priority);

	if (ret == 0 && is_realtime(policy))
		ret = may_be_realtime(policy, priority);
	if (ret < 0)
		return ret;
	t->policy = policy & ~(uint32_t)SCHED_RESET_ON_FORK;
	t->priority = priority;
	/* Real-time before everything, idle behind everything. */
	t->base.level = is_realtime(policy)    ? 0
			: policy == SCHED_IDLE ? WF_LEVELS - 1
					       : (uint8_t)(WF_LEVEL_NORMAL + t->nice);
	return 0;
}

long sysc_sched_setscheduler(struct wf_frame *f)
{
	bool foreign;
	struct lx_thread *t = named((uint32_t)WF_ARG0(f), &foreign);
	int priority = 0;

	if (foreign)
		return lx_raw(f);
	if ((int)WF_ARG0(f) < 0 || (int)WF_ARG1(f) < 0)
		return -EINVAL;
	if (wf_arch_copy(&priority, (const void *)WF_ARG2(f), sizeof(priority)) < 0)
		return WF_ARG2(f) ? -EFAULT : -EINVAL;
	return t ? set_policy(t, (uint32_t)WF_ARG1(f), priority) : -ESRCH;
}

long sysc_sched_setparam(struct wf_frame *f)
{
	bool foreign;
	struct lx_thread *t = named((uint32_t)WF_ARG0(f), &foreign);
	int priority = 0;

	if (foreign)
		return lx_raw(f);
	if ((int)WF_ARG0(f) < 0 || !WF_ARG1(f))
		return -EINVAL;
	if (wf_arch_copy(&priority, (const void *)WF_ARG1(f), sizeof(priority)) < 0)
		return -EFAULT;
	return t ? set_policy(t, t->policy, priority) : -ESRCH;
}

long sysc_sched_getscheduler(struct wf_frame *f)
{
	bool foreign;
	struct lx_thread *t = named((uint32_t)WF_ARG0(f), &foreign);

	if (foreign || (int)WF_ARG0(f) < 0)
		return lx_raw(f);
	return t ? (long)t->policy : -ESRCH;
}

long sysc_sched_getparam(struct wf_frame *f)
{
	bool foreign;
	struct lx_thread *t = named((uint32_t)WF_ARG0(f), &foreign);

	if (foreign || (int)WF_ARG0(f) < 0)
		return lx_raw(f);
	if (!WF_ARG1(f))
		return -EINVAL;
	return t ? wf_arch_copy((void *)WF_ARG1(f), &t->priority, sizeof(t->priority)) : -ESRCH;
}

/* The processors that this process may use at all: those of the door, which never changes them. */
static long allowed(uint64_t *mask, size_t bytes)
{
	return sys3(__NR_sched_getaffinity, wf_rt.door->tid, bytes, mask);
}

static bool is_equal(const uint64_t *a, const uint64_t *b)
{
	for (size_t i = 0; i < ARRAY_LEN(((struct lx_thread *)0)->affinity); i++)
		if (a[i] != b[i])
			return false;
	return true;
}

/* The kernel thread goes where the thread may run, and back again with the next one that may run anywhere. */
void lx_place(struct wf_kthread *k, struct wf_thread *base)
{
	struct lx_thread *t = lx_of(base);
	uint64_t all[ARRAY_LEN(t->affinity)] = { 0 };

	if (base->is_pinned) {
		(void)sys3(__NR_sched_setaffinity, k->tid, sizeof(t->affinity), t->affinity);
	} else {
		(void)allowed(all, sizeof(all));
		(void)sys3(__NR_sched_setaffinity, k->tid, sizeof(all), all);
	}
	k->is_pinned = base->is_pinned;
}

long sysc_sched_setaffinity(struct wf_frame *f)
{
	bool foreign;
	struct lx_thread *t = named((uint32_t)WF_ARG0(f), &foreign);
	uint64_t want[ARRAY_LEN(t->affinity)] = { 0 }, have[ARRAY_LEN(t->affinity)] = { 0 };
	size_t bytes = WF_MIN(WF_ARG1(f), sizeof(want));
	struct wf_kthread *k;
	bool any = false;

	if (foreign)
		return lx_raw(f);
	if (!t)
		return -ESRCH;
	if (wf_arch_copy(want, (const void *)WF_ARG2(f), bytes) < 0)
		return -EFAULT;
	if (allowed(have, sizeof(have)) < 0)
		return -EINVAL;
	for (size_t i = 0; i < ARRAY_LEN(want); i++) {
		want[i] &= have[i];
		any |= want[i] != 0;
	}
	if (!any)
		return -EINVAL;
	__builtin_memcpy(t->affinity, want, sizeof(want));
	t->has_affinity = true;
	t->base.is_pinned = !is_equal(want, have);
	if (t == lx_self())
		lx_place(wf_self_kthread(), &t->base);
	else if ((k = wf_load_acquire(&t->base.kthread))) {
		(void)wf_fetch_or(&t->base.attention, WF_ATT_RESCHED); /* moved when it runs next */
		wf_kick(k);
	}
	return 0;
}

long sysc_sched_getaffinity(struct wf_frame *f)
{
	bool foreign;
	struct lx_thread *t = named((uint32_t)WF_ARG0(f), &foreign);
	uint64_t mask[ARRAY_LEN(t->affinity)] = { 0 };
	long bytes;

	if (foreign)
		return lx_raw(f);
	if (!t)
		return -ESRCH;
	bytes = allowed(mask, WF_MIN(WF_ARG1(f), sizeof(mask)));
	if (bytes < 0)
		return bytes;
	if (t->has_affinity)
		__builtin_memcpy(mask, t->affinity, (size_t)bytes);
	return wf_arch_copy((void *)WF_ARG2(f), mask, (size_t)bytes) < 0 ? -EFAULT : bytes;
}

long sysc_sched_rr_get_interval(struct wf_frame *f)
{
	bool foreign;
	struct lx_thread *t = named((uint32_t)WF_ARG0(f), &foreign);
	struct __kernel_timespec ts = { 0, WF_SLICE_NS };

	if (foreign)
		return lx_raw(f);
	return t ? wf_arch_copy((void *)WF_ARG1(f), &ts, sizeof(ts)) : -ESRCH;
}

/* nice is per thread on Linux; it becomes the run queue level. */
long sysc_setpriority(struct wf_frame *f)
{
	uint32_t who = (uint32_t)WF_ARG1(f);
	int nice = WF_MAX(-20, WF_MIN(19, (int)WF_ARG2(f)));
	struct lx_thread *t;

	if (WF_ARG0(f) != 0 || (who && who < WF_TID_BASE && who != (uint32_t)wf_rt.pid))
		return lx_raw(f);
	t = lx_by_tid(who);
	if (!t)
		return -ESRCH;
	if (nice < t->nice && sys0(__NR_geteuid) != 0)
		return -EACCES;
	t->nice = nice;
	if (!is_realtime(t->policy))
		t->base.level = (uint8_t)(WF_LEVEL_NORMAL + nice);
	return 0;
}

long sysc_getpriority(struct wf_frame *f)
{
	uint32_t who = (uint32_t)WF_ARG1(f);
	struct lx_thread *t;

	if (WF_ARG0(f) != 0 || (who && who < WF_TID_BASE && who != (uint32_t)wf_rt.pid))
		return lx_raw(f);
	t = lx_by_tid(who);
	return t ? 20 - t->nice : -ESRCH;
}

long sysc_prctl(struct wf_frame *f)
{
	struct lx_thread *self = lx_self();
	char name[16] = { 0 };

	switch (WF_ARG0(f)) {
	case PR_SET_NAME:
		for (size_t i = 0; i < sizeof(name) - 1; i++) {
			if (wf_arch_copy(&name[i], (const char *)WF_ARG1(f) + i, 1) < 0)
				return -EFAULT;
			if (!name[i])
				break;
		}
		__builtin_memcpy(self->name, name, sizeof(name));
		return 0;
	case PR_GET_NAME:
		return wf_arch_copy((void *)WF_ARG1(f), self->name, sizeof(self->name));
	default:
		return lx_blocking(f, false);
	}
}

/*
 * libc gives back the unused part of a dead thread's stack with madvise: a system call and page faults for
 * the next thread on it. The stack cache keeps it warm instead; see docs/limits.md.
 */
long sysc_madvise(struct wf_frame *f)
{
	struct lx_thread *self = lx_self();
	uintptr_t low = WF_ARG0(f), high = low + WF_ARG1(f);

	if (WF_ARG2(f) == MADV_DONTNEED && self->stack_high && low >= self->stack_low &&
	    high <= self->stack_high && WF_ARG1(f))
		return 0;
	return lx_blocking(f, false);
}
