// SPDX-License-Identifier: Apache-2.0
/* trace: the rings keep the last events, and calls have one of their own. */
#include "trace/trace.h"

#include "tap.h"

static struct wf_trace_ring rings[WF_TRACE_RINGS];

static struct wf_trace_ring *const ring = rings, *const calls = rings + 1;

TEST(an_event_is_kept)
{
	ring->next = 0;
	wf_trace_write(rings, WF_EV_PARK, 7, 8, 9);
	CHECK_EQ(ring->next, 1);
	CHECK_EQ(ring->events[0].event, WF_EV_PARK);
	CHECK_EQ(ring->events[0].tid, 7);
	CHECK_EQ(ring->events[0].a, 8);
	CHECK_EQ(ring->events[0].b, 9);
	CHECK(ring->events[0].cycles != 0);
}

TEST(the_oldest_event_makes_room)
{
	int nr_bad = 0;

	ring->next = 0;
	for (uint64_t i = 0; i < WF_TRACE_EVENTS + 5; i++)
		wf_trace_write(rings, WF_EV_RUN, 0, i, 0);
	CHECK_EQ(ring->next, WF_TRACE_EVENTS + 5);
	for (uint64_t i = 5; i < WF_TRACE_EVENTS + 5; i++)
		nr_bad += ring->events[i % WF_TRACE_EVENTS].a != i;
	CHECK_EQ(nr_bad, 0);
}

TEST(calls_leave_the_other_events_alone)
{
	ring->next = calls->next = 0;
	wf_trace_write(rings, WF_EV_SPAWN, 0, 5, 0);
	for (uint64_t i = 0; i < 2 * WF_TRACE_EVENTS; i++)
		wf_trace_write(rings, WF_EV_SYSCALL, 0, i, 0);
	CHECK_EQ(ring->next, 1);
	CHECK_EQ(ring->events[0].event, WF_EV_SPAWN);
	CHECK_EQ(calls->next, 2 * WF_TRACE_EVENTS);
	CHECK_EQ(calls->events[WF_TRACE_EVENTS - 1].a, 2 * WF_TRACE_EVENTS - 1);
}

TEST(no_ring_is_no_trouble)
{
	wf_trace_write(NULL, WF_EV_RUN, 0, 0, 0);
}

TEST(every_event_has_a_name)
{
	for (int i = 0; i < WF_EV_NR; i++)
		CHECK(wf_trace_name((enum wf_event)i) != NULL);
	CHECK_STR_EQ(wf_trace_name(WF_EV_PREEMPT), "preempt");
	CHECK_STR_EQ(wf_trace_name(WF_EV_NR), "?");
}
