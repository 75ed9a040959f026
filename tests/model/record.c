// SPDX-License-Identifier: Apache-2.0
/*
 * A program is told to record while a kernel thread comes: in the end each has rings, and who finds that events are written
 * has its own by then.
 */
#include "model.h"
#include "sched/record.h"
#include "sched/runtime.h"

#include "tap.h"

static struct wf_kthread old, new;
static struct wf_kthread *list[2];
static struct wf_trace_ring *seen; /* by its owner: it may have written there */

static void come(void *arg)
{
	wf_spin_lock(&wf_rt.lock);
	wf_store_release(&wf_rt.kthreads[1], &new);
	wf_store_release(&wf_rt.nr_kthreads, 2u);
	wf_spin_unlock(&wf_rt.lock);
	if (!model_is_mutated("come", "give"))
		wf_record_give(&new);
	seen = wf_load_acquire(&new.ring);
	if (wf_load_acquire(&wf_trace.on))
		model_expect(wf_load_acquire(&new.ring),
			     "events are written, and one that has come has no ring");
}

static void look(void *arg)
{
	wf_record_look();
}

static void watch(void *arg)
{
	struct wf_trace_ring *rings;

	if (!wf_load_acquire(&wf_trace.on))
		return;
	rings = wf_load_acquire(&old.ring);
	model_expect(rings && rings[0].places && rings[0].mask,
		     "events are written, and a ring is not whole");
}

static void setup(void)
{
	old = new = (struct wf_kthread){ .index = 0 };
	list[0] = &old;
	list[1] = NULL;
	seen = NULL;
	wf_rt.kthreads = list;
	wf_rt.nr_kthreads = 1;
	wf_rt.lock = (__typeof__(wf_rt.lock)){ 0 };
	wf_trace = (struct wf_trace){ .asked = WF_TRACE_MIN_BYTES << WF_TRACE_ASKED_BYTES |
					       WF_TRACE_ASKED | WF_TRACE_SCHED };
	model_cpu("monitor", look, NULL, NULL);
	model_cpu("comer", come, NULL, NULL);
	model_cpu("watcher", watch, NULL, NULL);
}

static void all_have_rings(void)
{
	model_expect(wf_trace.on == WF_TRACE_SCHED && !wf_trace.asked, "nobody has heard");
	model_expect(old.ring, "one that was there has no ring");
	model_expect(new.ring, "one that came meanwhile has no ring");
	model_expect(!seen || seen == new.ring, "a ring is lost with what is in it");
}

static const struct model comes = { .setup = setup, .check = all_have_rings, .bound = 3 };

TEST(everybody_has_rings_when_events_are_written)
{
	model_verify(&comes);
}

TEST(one_that_comes_and_does_not_look_is_caught)
{
	model_catches(comes, "come", "give");
}

TEST(a_gift_that_writes_over_another_is_caught)
{
	model_catches(comes, "wf_record_give", "cas");
}
