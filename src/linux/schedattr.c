// SPDX-License-Identifier: Apache-2.0
/*
 * sched_setattr and sched_getattr: policy, priority and nice in one structure.
 *
 * The thread's own values stand in for those of the kernel thread it happens to run on; the rest (utilisation,
 * slice) is what the kernel says of that. More than them only the kernel can keep (SCHED_DEADLINE):
 * such a thread is bound.
 */
#include "linux/bind.h"
#include "linux/calls.h"
#include "linux/policy.h"

#include <linux/sched.h>
#include <linux/sched/types.h>

#define ATTR_BYTES_MAX WF_PAGE

static bool is_fair(uint32_t policy)
{
	return policy == SCHED_NORMAL || policy == SCHED_BATCH;
}

/* The program's structure may be older or newer than ours: what we do not know must be zero. */
static long read_attr(void *user, struct sched_attr *out)
{
	uint32_t bytes = 0;
	bool fits = true;

	if (wf_arch_copy(&bytes, user, sizeof(bytes)) < 0)
		return -EFAULT;
	if (!bytes)
		bytes = SCHED_ATTR_SIZE_VER0;
	fits = bytes >= SCHED_ATTR_SIZE_VER0 && bytes <= ATTR_BYTES_MAX;
	for (uint32_t i = sizeof(*out); fits && i < bytes; i++) {
		char c = 0;

		if (wf_arch_copy(&c, (const char *)user + i, 1) < 0)
			return -EFAULT;
		fits = !c;
	}
	if (!fits) {
		bytes = sizeof(*out);
		return wf_arch_copy(user, &bytes, sizeof(bytes)) < 0 ? -EFAULT : -E2BIG;
	}
	*out = (struct sched_attr){ 0 };
	return wf_arch_copy(out, user, WF_MIN(bytes, (uint32_t)sizeof(*out)));
}

static long apply(struct lx_thread *t, struct sched_attr *a)
{
	uint32_t now = lx_sched_plain(t->policy);
	uint32_t policy = a->sched_flags & SCHED_FLAG_KEEP_POLICY ? now : a->sched_policy;
	int nice = WF_MAX(-20, WF_MIN(19, a->sched_nice)), priority = (int)a->sched_priority;
	long ret;

	if (a->sched_flags & SCHED_FLAG_KEEP_PARAMS) {
		nice = t->nice;
		priority = t->priority;
	}
	if (a->sched_flags & ~(uint64_t)SCHED_FLAG_ALL)
		return -EINVAL;
	if (is_fair(policy) && nice < t->nice && !lx_sched_may_be_nice(nice))
		return -EPERM;
	if (a->sched_flags & SCHED_FLAG_RESET_ON_FORK)
		policy |= SCHED_RESET_ON_FORK;
	ret = lx_sched_set_policy(t, policy, priority);
	if (ret == 0 && is_fair(lx_sched_plain(policy)))
		lx_sched_set_nice(t, nice);
	return ret;
}

/* Another thread must be bound already: the call cannot wait until it runs. */
static long apply_by_kernel(struct lx_thread *t, struct sched_attr *a)
{
	bool is_own = t == lx_self(), had_state = wf_load_acquire(&t->binds) & LX_BIND_STATE;
	long ret = 0;

	if (!is_own && !lx_bind_tid(t))
		return -EPERM;
	if (is_own)
		ret = lx_bind_for(LX_BIND_STATE);
	if (ret < 0)
		return ret;
	a->size = sizeof(*a);
	ret = sys3(__NR_sched_setattr, lx_bind_tid(t), a, 0);
	if (ret == 0 && !(a->sched_flags & SCHED_FLAG_KEEP_POLICY)) {
		t->policy = a->sched_policy;
		t->priority = (int)a->sched_priority;
	}
	if (ret < 0 && is_own && !had_state)
		lx_bind_no_longer_for(LX_BIND_STATE);
	return ret;
}

long sysc_sched_setattr(struct wf_frame *f)
{
	bool foreign;
	struct lx_thread *t = lx_sched_named((uint32_t)WF_ARG0(f), &foreign);
	struct sched_attr a;
	long ret;

	if (foreign)
		return lx_raw(f);
	if (!WF_ARG1(f) || (int)WF_ARG0(f) < 0 || (uint32_t)WF_ARG2(f))
		return -EINVAL;
	ret = read_attr((void *)WF_ARG1(f), &a);
	if (ret < 0)
		return ret;
	if ((int)a.sched_policy < 0)
		return -EINVAL;
	if (!t)
		return -ESRCH;
	if (a.sched_policy == SCHED_DEADLINE || a.sched_flags & SCHED_FLAG_UTIL_CLAMP)
		return apply_by_kernel(t, &a);
	return apply(t, &a);
}

long sysc_sched_getattr(struct wf_frame *f)
{
	bool foreign;
	struct lx_thread *t = lx_sched_named((uint32_t)WF_ARG0(f), &foreign);
	uint32_t bytes = (uint32_t)WF_ARG2(f);
	struct sched_attr a = { 0 };
	long ret;

	if (foreign || !t || !WF_ARG1(f) || (int)WF_ARG0(f) < 0 || bytes > ATTR_BYTES_MAX)
		return lx_raw(f);
	ret = sys4(__NR_sched_getattr, lx_bind_tid(t), &a, WF_MIN(bytes, (uint32_t)sizeof(a)),
		   WF_ARG3(f));
	if (ret < 0)
		return ret;
	a.sched_policy = lx_sched_plain(t->policy);
	a.sched_flags = t->policy & SCHED_RESET_ON_FORK ? SCHED_FLAG_RESET_ON_FORK : 0;
	a.sched_nice = is_fair(a.sched_policy) ? t->nice : 0;
	a.sched_priority = (uint32_t)t->priority;
	return wf_arch_copy((void *)WF_ARG1(f), &a, a.size);
}
