// SPDX-License-Identifier: Apache-2.0
/* trace: the rings keep the last events, and calls have one of their own. */
#include "trace/trace.h"

#include "tap.h"

#include <string.h>

#define NR_PLACES (WF_TRACE_MIN_BYTES / sizeof(struct wf_trace_event))

static _Alignas(4096) char memory[4096 + 2 * WF_TRACE_MIN_BYTES];
static struct wf_trace_ring *ring, *calls;

static const struct wf_trace_moment now = { 1, 2, 3 }, later = { 10, 20, 30 };

static struct wf_trace_ring *begin(uint32_t keeps)
{
	memset(memory, 0, sizeof(memory));
	wf_trace = (struct wf_trace){ 0 };
	wf_trace_arm(keeps, WF_TRACE_MIN_BYTES, &now);
	ring = wf_trace_init(memory);
	calls = ring + 1;
	return ring;
}

TEST(an_event_is_kept_with_its_number)
{
	struct wf_trace_ring *rings = begin(WF_TRACE_SCHED);

	wf_trace_write(rings, WF_EV_KICK, 0, 0, 0);
	wf_trace_write(rings, WF_EV_PARK, 7, 8, 9);
	CHECK_EQ(ring->next, 2);
	CHECK_EQ(wf_trace_kind(&ring->places[1]), WF_EV_PARK);
	CHECK_EQ(ring->places[1].event >> WF_TRACE_KIND_BITS, 1);
	CHECK_EQ(ring->places[1].tid, 7);
	CHECK_EQ(ring->places[1].a, 8);
	CHECK_EQ(ring->places[1].b, 9);
	CHECK(ring->places[1].cycles != 0);
}

TEST(the_oldest_event_makes_room)
{
	struct wf_trace_ring *rings = begin(WF_TRACE_SCHED);
	int nr_bad = 0;

	for (uint64_t i = 0; i < NR_PLACES + 5; i++)
		wf_trace_write(rings, WF_EV_RUN, 0, i, 0);
	CHECK_EQ(ring->next, NR_PLACES + 5);
	for (uint64_t i = 5; i < NR_PLACES + 5; i++)
		nr_bad += ring->places[i % NR_PLACES].a != i;
	CHECK_EQ(nr_bad, 0);
}

TEST(calls_leave_the_other_events_alone)
{
	struct wf_trace_ring *rings = begin(WF_TRACE_SCHED | WF_TRACE_CALLS);

	wf_trace_write(rings, WF_EV_SPAWN, 0, 5, 0);
	for (uint64_t i = 0; i < NR_PLACES; i++) {
		wf_trace_write(rings, WF_EV_SYSCALL, 0, i, 0);
		wf_trace_write(rings, WF_EV_RETURN, 0, i, 0);
	}
	CHECK_EQ(ring->next, 1);
	CHECK_EQ(wf_trace_kind(&ring->places[0]), WF_EV_SPAWN);
	CHECK_EQ(calls->next, 2 * NR_PLACES);
	CHECK_EQ(calls->places[NR_PLACES - 1].a, NR_PLACES - 1);
}

TEST(calls_are_kept_only_where_they_are_asked_for)
{
	struct wf_trace_ring *rings = begin(WF_TRACE_SCHED);

	wf_trace_write(rings, WF_EV_SYSCALL, 0, 1, 0);
	CHECK_EQ(ring->next, 0);
	CHECK_EQ(calls->next, 0);
	CHECK_EQ(wf_trace_bytes(), 4096 + WF_TRACE_MIN_BYTES);
}

TEST(a_size_is_rounded_down_and_has_bounds)
{
	const struct {
		uint64_t asked, got;
	} sizes[] = { { 0, 4096 },    { 5000, 4096 },         { 8191, 4096 },
		      { 8192, 8192 }, { 1u << 20, 1u << 20 }, { UINT64_MAX / 4, 1u << 30 } };

	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		wf_trace_arm(WF_TRACE_SCHED, sizes[i].asked, &now);
		CHECK_EQ(wf_trace.ring_bytes, sizes[i].got);
	}
}

TEST(freezing_happens_once)
{
	(void)begin(WF_TRACE_SCHED);
	wf_trace_freeze(&later);
	CHECK_EQ(wf_trace.on, 0);
	CHECK_EQ(wf_trace.keeps, WF_TRACE_SCHED);
	wf_trace_freeze(&now);
	CHECK_EQ(wf_trace.frozen.cycles, 10);
	CHECK_EQ(wf_trace.began.cycles, 1);
}

TEST(what_is_frozen_is_written_to_no_more)
{
	struct wf_trace_ring *rings = begin(WF_TRACE_SCHED);

	wf_trace_write(rings, WF_EV_KICK, 0, 0, 0);
	wf_trace_freeze(&later);
	wf_trace_write(rings, WF_EV_KICK, 0, 0, 0);
	CHECK_EQ(ring->next, 1);
}

TEST(what_is_not_armed_cannot_freeze)
{
	wf_trace = (struct wf_trace){ 0 };
	wf_trace_freeze(&later);
	CHECK_EQ(wf_trace.frozen.cycles, 0);
	CHECK_EQ(wf_trace_bytes(), 0);
	CHECK(wf_trace_init(NULL) == NULL);
}

TEST(no_ring_is_no_trouble)
{
	(void)begin(WF_TRACE_SCHED);
	wf_trace_write(NULL, WF_EV_RUN, 0, 0, 0);
}

TEST(every_event_has_a_name)
{
	for (int i = 0; i < WF_EV_NR; i++)
		CHECK(wf_trace_name((enum wf_event)i) != NULL);
	CHECK_STR_EQ(wf_trace_name(WF_EV_PREEMPT), "preempt");
	CHECK_STR_EQ(wf_trace_name(WF_EV_NR), "?");
}
