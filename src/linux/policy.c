// SPDX-License-Identifier: Apache-2.0
/*
 * Scheduling policy, priority, affinity and nice of threads.
 *
 * All of it is kept per thread and validated as the kernel does. Only the kernel can do real-time
 * policies and fewer processors than the process has: such a thread is bound, and the calls about it
 * are made for its kernel thread. A tid of another process goes to the kernel.
 */
#include "linux/bind.h"
#include "linux/calls.h"
#include "linux/policy.h"

#include <linux/capability.h>
#include <linux/sched.h>

#define RLIMIT_NICE 13
#define PRIO_PGRP 1
#define PRIO_USER 2
#define DOOR_PRIORITY 99

struct lx_thread *lx_sched_named(uint32_t tid, bool *out_foreign)
{
	struct lx_thread *t = lx_by_tid(tid);

	*out_foreign = !t && tid < WF_TID_BASE;
	return t;
}

uint32_t lx_sched_plain(uint32_t policy)
{
	return policy & ~(uint32_t)SCHED_RESET_ON_FORK;
}

bool lx_sched_is_realtime(uint32_t policy)
{
	policy = lx_sched_plain(policy);
	return policy == SCHED_FIFO || policy == SCHED_RR || policy == SCHED_DEADLINE;
}

static long check_policy(uint32_t policy, int priority)
{
	policy = lx_sched_plain(policy);
	if (policy != SCHED_NORMAL && policy != SCHED_BATCH && policy != SCHED_IDLE &&
	    policy != SCHED_FIFO && policy != SCHED_RR)
		return -EINVAL;
	if (lx_sched_is_realtime(policy) ? priority < 1 || priority > 99 : priority != 0)
		return -EINVAL;
	return 0;
}

/* May we have a real-time policy at all? Ask the kernel for it on this kernel thread, and give it back. */
static long may_be_realtime(uint32_t policy, int priority)
{
	int was = (int)sys1(__NR_sched_getscheduler, 0), old = 0;
	long ret;

	(void)sys2(__NR_sched_getparam, 0, &old);
	ret = sys3(__NR_sched_setscheduler, 0, policy, &priority);
	if (ret == 0)
		(void)sys3(__NR_sched_setscheduler, 0, was, &old);
	return ret;
}

/*
 * Signals and timers must reach threads that never give the processor away: the door goes before all of them.
 * Kernel threads that it makes do not inherit that.
 */
static void raise_door(void)
{
	int priority = DOOR_PRIORITY;

	if (!wf_exchange(&lx.is_door_raised, 1u))
		(void)sys3(__NR_sched_setscheduler, wf_rt.door->tid,
			   SCHED_FIFO | SCHED_RESET_ON_FORK, &priority);
}

/*
 * The level in weft's own queues: real-time before everything, idle behind everything. The kernel counts the process's
 * own nice value, by that of the kernel threads: only what a thread differs by is ours, or the clocks of all threads
 * of a process with a low one would be slow, and their turns coarse.
 */
static void set_level(struct lx_thread *t)
{
	int level = lx_sched_is_realtime(t->policy) ? 0
		    : lx_sched_plain(t->policy) == SCHED_IDLE
			    ? WF_LEVELS - 1
			    : WF_LEVEL_NORMAL + t->nice - lx.base_nice;

	wf_store_relaxed(&t->base.level, (uint8_t)WF_MAX(0, WF_MIN(level, WF_LEVELS - 1)));
	if (level != WF_LEVEL_NORMAL)
		wf_store_relaxed(&wf_rt.has_levels, 1u);
}

/* The workers cannot stand in for it; and a kernel thread that has a policy of its own keeps to its thread. */
static bool needs_own(const struct lx_thread *t, uint32_t policy, int priority)
{
	if (lx_bind_tid(t) && policy != lx.base_policy)
		return true;
	if (lx_sched_is_realtime(lx.base_policy))
		return lx_sched_plain(policy) != lx_sched_plain(lx.base_policy) ||
		       priority != lx.base_priority;
	return lx_sched_is_realtime(policy);
}

void lx_sched_inherit(struct lx_thread *t, const struct lx_thread *parent)
{
	t->policy = parent->policy;
	t->priority = parent->priority;
	t->nice = parent->nice;
	if (t->policy & SCHED_RESET_ON_FORK) {
		t->policy = lx_sched_is_realtime(t->policy) ? SCHED_NORMAL
							    : lx_sched_plain(t->policy);
		t->priority = 0;
		t->nice = WF_MAX(t->nice, 0);
	}
	set_level(t);
}

long lx_sched_set_policy(struct lx_thread *t, uint32_t policy, int priority)
{
	uint32_t old_policy = t->policy;
	int old_priority = t->priority;
	bool needs = needs_own(t, policy, priority), is_own = t == lx_self();
	long ret = check_policy(policy, priority);

	if (ret < 0)
		return ret;
	if (needs && !is_own && !lx_bind_tid(t))
		ret = may_be_realtime(policy, priority);
	if (ret < 0)
		return ret;
	t->policy = policy;
	t->priority = priority;
	if (needs && is_own)
		ret = lx_bind_for(LX_BIND_POLICY);
	if (ret == 0 && lx_bind_tid(t))
		ret = sys3(__NR_sched_setscheduler, lx_bind_tid(t), policy, &priority);
	if (ret < 0) {
		t->policy = old_policy;
		t->priority = old_priority;
		needs = needs_own(t, old_policy, old_priority);
	}
	set_level(t);
	if (!needs && is_own)
		lx_bind_no_longer_for(LX_BIND_POLICY);
	else if (!needs)
		lx_bind_other_no_longer(t, LX_BIND_POLICY);
	else if (!is_own)
		lx_bind_other(t, LX_BIND_POLICY);
	if (ret == 0 && needs &&
	    (lx_sched_is_realtime(policy) || lx_sched_is_realtime(lx.base_policy)))
		raise_door();
	return ret;
}

long sysc_sched_setscheduler(struct wf_frame *f)
{
	bool foreign;
	struct lx_thread *t = lx_sched_named((uint32_t)WF_ARG0(f), &foreign);
	int priority = 0;

	if (foreign)
		return lx_raw(f);
	if ((int)WF_ARG0(f) < 0 || (int)WF_ARG1(f) < 0)
		return -EINVAL;
	if (wf_arch_copy(&priority, (const void *)WF_ARG2(f), sizeof(priority)) < 0)
		return WF_ARG2(f) ? -EFAULT : -EINVAL;
	return t ? lx_sched_set_policy(t, (uint32_t)WF_ARG1(f), priority) : -ESRCH;
}

long sysc_sched_setparam(struct wf_frame *f)
{
	bool foreign;
	struct lx_thread *t = lx_sched_named((uint32_t)WF_ARG0(f), &foreign);
	int priority = 0;

	if (foreign)
		return lx_raw(f);
	if ((int)WF_ARG0(f) < 0 || !WF_ARG1(f))
		return -EINVAL;
	if (wf_arch_copy(&priority, (const void *)WF_ARG1(f), sizeof(priority)) < 0)
		return -EFAULT;
	return t ? lx_sched_set_policy(t, t->policy, priority) : -ESRCH;
}

long sysc_sched_getscheduler(struct wf_frame *f)
{
	bool foreign;
	struct lx_thread *t = lx_sched_named((uint32_t)WF_ARG0(f), &foreign);

	if (foreign || (int)WF_ARG0(f) < 0)
		return lx_raw(f);
	return t ? (long)t->policy : -ESRCH;
}

long sysc_sched_getparam(struct wf_frame *f)
{
	bool foreign;
	struct lx_thread *t = lx_sched_named((uint32_t)WF_ARG0(f), &foreign);

	if (foreign || (int)WF_ARG0(f) < 0)
		return lx_raw(f);
	if (!WF_ARG1(f))
		return -EINVAL;
	return t ? wf_arch_copy((void *)WF_ARG1(f), &t->priority, sizeof(t->priority)) : -ESRCH;
}

/* The processors on which unbound threads run: those of the door, which never changes them. */
static long usual(uint64_t *mask, size_t bytes)
{
	return sys3(__NR_sched_getaffinity, wf_rt.door->tid, bytes, mask);
}

/*
 * Leaves of want what a thread may have. The program's starter may have left it fewer processors than it may use
 * (taskset): the kernel knows, and is asked by trying.
 */
static long may_have(uint64_t *want, const uint64_t *have, size_t words)
{
	uint64_t now[ARRAY_LEN(((struct lx_thread *)0)->affinity)] = { 0 };
	bool any = false, is_more = false;
	long ret = 0;

	for (size_t i = 0; i < words; i++) {
		is_more |= (want[i] & ~have[i]) != 0;
		any |= want[i] != 0;
	}
	if (!is_more)
		return any ? 0 : -EINVAL;
	if (sys3(__NR_sched_getaffinity, 0, sizeof(now), now) < 0)
		return -EINVAL;
	ret = sys3(__NR_sched_setaffinity, 0, words * sizeof(*want), want);
	if (ret < 0)
		return ret;
	__builtin_memset(want, 0, words * sizeof(*want));
	(void)sys3(__NR_sched_getaffinity, 0, words * sizeof(*want), want);
	(void)sys3(__NR_sched_setaffinity, 0, sizeof(now), now);
	return 0;
}

static bool is_equal(const uint64_t *a, const uint64_t *b)
{
	for (size_t i = 0; i < ARRAY_LEN(((struct lx_thread *)0)->affinity); i++)
		if (a[i] != b[i])
			return false;
	return true;
}

long sysc_sched_setaffinity(struct wf_frame *f)
{
	bool foreign;
	struct lx_thread *t = lx_sched_named((uint32_t)WF_ARG0(f), &foreign);
	uint64_t want[ARRAY_LEN(t->affinity)] = { 0 }, have[ARRAY_LEN(t->affinity)] = { 0 };
	size_t bytes = WF_MIN(WF_ARG1(f), sizeof(want));
	long ret;

	if (foreign)
		return lx_raw(f);
	if (wf_arch_copy(want, (const void *)WF_ARG2(f), bytes) < 0)
		return -EFAULT;
	if (!t)
		return -ESRCH;
	if (usual(have, sizeof(have)) < 0)
		return -EINVAL;
	ret = may_have(want, have, ARRAY_LEN(want));
	if (ret == 0 && t == lx_self() && !is_equal(want, have))
		ret = lx_bind_for(LX_BIND_AFFINITY);
	if (ret < 0)
		return ret;
	__builtin_memcpy(t->affinity, want, sizeof(want));
	t->has_affinity = true;
	if (lx_bind_tid(t))
		ret = sys3(__NR_sched_setaffinity, lx_bind_tid(t), sizeof(want), want);
	if (!is_equal(want, have)) {
		if (t != lx_self())
			lx_bind_other(t, LX_BIND_AFFINITY);
	} else if (t == lx_self()) {
		lx_bind_no_longer_for(LX_BIND_AFFINITY);
	} else {
		lx_bind_other_no_longer(t, LX_BIND_AFFINITY);
	}
	return ret;
}

long sysc_sched_getaffinity(struct wf_frame *f)
{
	bool foreign;
	struct lx_thread *t = lx_sched_named((uint32_t)WF_ARG0(f), &foreign);
	uint64_t mask[ARRAY_LEN(t->affinity)] = { 0 };
	long bytes;

	if (foreign)
		return lx_raw(f);
	if (WF_ARG1(f) % sizeof(mask[0]))
		return -EINVAL;
	bytes = usual(mask, WF_MIN((uint32_t)WF_ARG1(f), sizeof(mask)));
	if (bytes < 0)
		return bytes;
	if (!t)
		return -ESRCH;
	if (t->has_affinity)
		__builtin_memcpy(mask, t->affinity, (size_t)bytes);
	return wf_arch_copy((void *)WF_ARG2(f), mask, (size_t)bytes) < 0 ? -EFAULT : bytes;
}

long sysc_sched_rr_get_interval(struct wf_frame *f)
{
	bool foreign;
	struct lx_thread *t = lx_sched_named((uint32_t)WF_ARG0(f), &foreign);
	struct __kernel_timespec ts = { wf_rt.slice_ns / WF_SEC, wf_rt.slice_ns % WF_SEC };

	if (foreign || (int)WF_ARG0(f) < 0)
		return lx_raw(f);
	if (t && lx_bind_tid(t))
		return sys2(__NR_sched_rr_get_interval, lx_bind_tid(t), WF_ARG1(f));
	return t ? wf_arch_copy((void *)WF_ARG1(f), &ts, sizeof(ts)) : -ESRCH;
}

bool lx_sched_may_be_nice(int nice)
{
	struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct data[2] = { { 0 } };
	uint64_t limit[2] = { 0, 0 };

	if (sys4(__NR_prlimit64, 0, RLIMIT_NICE, NULL, limit) == 0 &&
	    (uint64_t)(20 - nice) <= limit[0])
		return true;
	return sys2(__NR_capget, &header, data) == 0 && data[0].effective & 1u << CAP_SYS_NICE;
}

/* nice is per thread on Linux; it becomes the run queue level, or the kernel's when the thread is bound. */
void lx_sched_set_nice(struct lx_thread *t, int nice)
{
	t->nice = nice;
	set_level(t);
	if (!lx_bind_tid(t))
		return;
	(void)sys3(__NR_setpriority, 0, lx_bind_tid(t), nice);
	/* A kernel thread that is for all must be as it was. */
	if (nice != lx.base_nice)
		(void)wf_fetch_or(&t->binds, LX_BIND_NICE);
	else if (t == lx_self())
		lx_bind_no_longer_for(LX_BIND_NICE);
}

void lx_sched_show_kernel(void)
{
	struct lx_thread *self = lx_self();

	if (self->nice != lx.base_nice)
		(void)lx_bind_for(LX_BIND_NICE);
	if (self->policy != lx.base_policy && !lx_bind_tid(self))
		(void)lx_bind_for(LX_BIND_POLICY);
}

/* All processes of a group or of a user, and all threads of each. */
static bool is_one_of(int which, int who)
{
	if (which == PRIO_PGRP)
		return !who || who == sys1(__NR_getpgid, 0);
	return which == PRIO_USER && (!who || who == sys0(__NR_getuid));
}

/* The kernel has done so for all kernel threads; which of ours it should have refused is told by what they had. */
static long set_nice_of_all(int nice, long ret)
{
	bool may = lx_sched_may_be_nice(nice);
	uint32_t n = wf_thread_slots();

	if (ret < 0)
		return ret;
	lx.base_nice = nice;
	for (uint32_t i = 0; i < n; i++) {
		struct lx_thread *t = lx_of(wf_thread_slot(i));
		enum wf_state s = wf_state_of(wf_load_acquire(&t->base.state));
		bool is_refused;

		if (s == WF_FREE || s == WF_DEAD)
			continue;
		is_refused = nice < t->nice && !may;
		if (is_refused)
			ret = -EACCES;
		lx_sched_set_nice(t, is_refused ? t->nice : nice);
	}
	return ret;
}

static bool is_about_ours(struct wf_frame *f, struct lx_thread **out)
{
	uint32_t who = (uint32_t)WF_ARG1(f);

	if (WF_ARG0(f) != 0 || (who && who < WF_TID_BASE && who != (uint32_t)wf_rt.pid))
		return false;
	*out = lx_by_tid(who);
	return true;
}

long sysc_setpriority(struct wf_frame *f)
{
	int nice = WF_MAX(-20, WF_MIN(19, (int)WF_ARG2(f)));
	struct lx_thread *t;

	if (is_one_of((int)WF_ARG0(f), (int)WF_ARG1(f)))
		return set_nice_of_all(nice, lx_raw(f));
	if (!is_about_ours(f, &t))
		return lx_raw(f);
	if (!t)
		return -ESRCH;
	if (nice < t->nice && !lx_sched_may_be_nice(nice))
		return -EACCES;
	lx_sched_set_nice(t, nice);
	return 0;
}

long sysc_getpriority(struct wf_frame *f)
{
	struct lx_thread *t;

	if (!is_about_ours(f, &t))
		return lx_raw(f);
	return t ? 20 - t->nice : -ESRCH;
}
