// SPDX-License-Identifier: Apache-2.0
/*
 * The kernel lets a thread that asks for short slices have the processor before those that ask for nothing. No privilege is
 * needed, and kernels before 6.12 take no notice.
 */
#include "sys/slice.h"
#include "sys/syscall.h"

#include <linux/sched.h>
#include <linux/sched/types.h>

int64_t sys_slice_ask(int64_t ns)
{
	struct sched_attr attr = { .size = sizeof(attr) };
	int64_t before;

	if (sys4(__NR_sched_getattr, 0, &attr, sizeof(attr), 0) < 0 ||
	    (attr.sched_policy != SCHED_NORMAL && attr.sched_policy != SCHED_BATCH))
		return 0;
	before = (int64_t)attr.sched_runtime;
	attr.sched_runtime = (uint64_t)ns;
	(void)sys3(__NR_sched_setattr, 0, &attr, 0);
	return before;
}
