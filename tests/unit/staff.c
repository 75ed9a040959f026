// SPDX-License-Identifier: Apache-2.0
/* sched/staff: a kernel thread that has ended comes back as a new one. */
#include "sched/runtime.h"
#include "sched/staff.h"

#include "tap.h"

static struct wf_kthread k;

static void end_one(void)
{
	k = (struct wf_kthread){ .self = &k, .index = 3, .kick_sent = 1, .preempt = 1, .insys = 2 };
	wf_staff_end(&k);
}

TEST(one_that_comes_back_is_as_new)
{
	end_one();
	CHECK(wf_staff_new() == &k);
	CHECK(k.is_revived && k.self == &k);
	CHECK_EQ(k.index, 3);
	CHECK_EQ(k.kick_sent, 0);
	CHECK_EQ(k.preempt, 0);
	CHECK_EQ(k.insys, 0);
}

/* The monitor looked at it long ago, and stands between its count and its look: the next call would wait for its end for ever. */
TEST(a_monitor_that_is_counted_there_can_count_itself_out)
{
	end_one();
	wf_fetch_add(&k.nr_preempting, 1u);
	CHECK(wf_staff_new() == &k);
	CHECK_EQ(k.nr_preempting, 1);
}

/* Or the asker, which finds that it is gone, takes it back from nobody, and waits for ever. */
TEST(an_errand_that_is_asked_of_it_stays)
{
	int errand;

	end_one();
	wf_store_release(&k.errand, (void *)&errand);
	CHECK(wf_staff_new() == &k);
	CHECK(k.errand == &errand);
}
