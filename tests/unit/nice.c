// SPDX-License-Identifier: Apache-2.0
/* Nice values become levels of the run queues: by what a thread differs from its process. */
#include "linux/abi.h"
#include "linux/policy.h"

#include "tap.h"

static struct lx_thread thread;

static int level_of(int nice)
{
	lx_sched_set_nice(&thread, nice);
	return thread.base.level;
}

TEST(a_thread_like_its_process_has_the_usual_level)
{
	for (int nice = -20; nice < 20; nice++) {
		lx.base_nice = nice;
		CHECK_EQ(level_of(nice), WF_LEVEL_NORMAL);
	}
	CHECK_EQ(wf_rt.has_levels, 0);
}

TEST(others_have_what_they_differ_by)
{
	lx.base_nice = -15;
	CHECK_EQ(level_of(-10), WF_LEVEL_NORMAL + 5);
	CHECK_EQ(level_of(-20), WF_LEVEL_NORMAL - 5);
	CHECK_EQ(level_of(19), WF_LEVELS - 1);
	CHECK_EQ(wf_rt.has_levels, 1);
	lx.base_nice = 19;
	CHECK_EQ(level_of(0), WF_LEVEL_NORMAL - 19);
	CHECK_EQ(level_of(-20), 0);
}
