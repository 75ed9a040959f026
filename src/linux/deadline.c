// SPDX-License-Identifier: Apache-2.0
/*
 * Timeouts of the program's, as deadlines on CLOCK_MONOTONIC.
 */
#include "linux/abi.h"
#include "linux/deadline.h"
#include "sched/clock.h"

int64_t lx_deadline_in(int64_t ns)
{
	int64_t now = wf_now();

	return ns > WF_NEVER - now ? WF_NEVER - 1 : now + WF_MAX(ns, 0);
}

static long read_timespec(const void *user, int64_t *out_ns)
{
	struct __kernel_timespec ts;

	if (wf_arch_copy(&ts, user, sizeof(ts)) < 0)
		return -EFAULT;
	if (ts.tv_sec < 0 || ts.tv_nsec < 0 || ts.tv_nsec >= WF_SEC)
		return -EINVAL;
	*out_ns = ts.tv_sec > WF_NEVER / WF_SEC - 1 ? WF_NEVER - 1
						    : ts.tv_sec * WF_SEC + ts.tv_nsec;
	return 0;
}

long lx_deadline_relative(const void *user_timespec, int64_t *out_deadline)
{
	int64_t ns = 0;
	long ret = read_timespec(user_timespec, &ns);

	if (ret == 0)
		*out_deadline = lx_deadline_in(ns);
	return ret;
}

long lx_deadline_absolute(const void *user_timespec, int clock, int64_t *out_deadline)
{
	int64_t at = 0, now = 0;
	long ret = read_timespec(user_timespec, &at);

	if (ret < 0)
		return ret;
	if (clock != 1) {
		ret = sys_clock_read(clock, &now);
		if (ret < 0)
			return ret;
		*out_deadline = at <= now ? 0 : lx_deadline_in(at - now);
		return 0;
	}
	*out_deadline = WF_MIN(at, WF_NEVER - 1);
	return 0;
}
