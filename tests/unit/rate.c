// SPDX-License-Identifier: Apache-2.0
/* sched/rate: spans of time follow the cycle counter, whatever its rate. */
#include "sched/rate.h"

#include "tap.h"

#define GHZ 1000000000ull

static uint64_t hz;
static int64_t now;

/* The monitor looks when the counter has gone at this rate for a second. */
static void look(uint64_t rate)
{
	static uint64_t cycles;

	cycles += rate;
	now += WF_SEC;
	wf_rate_look(now, cycles);
	hz = rate;
}

static void begin(uint64_t rate)
{
	wf_rate = (struct wf_rate){ 0 };
	wf_rate_begin();
	now = 1000 * WF_SEC; /* since the machine's start */
	look(rate);
	look(rate);
}

static bool is_about(uint64_t is, uint64_t wanted)
{
	return is + wanted / 100 + 1 >= wanted && is <= wanted + wanted / 100 + 1;
}

TEST(the_first_guess_is_2_5_ghz)
{
	wf_rate = (struct wf_rate){ 0 };
	wf_rate_begin();
	CHECK(is_about(wf_span_cycles(WF_SPAN_POLL), 500000));
	CHECK(is_about(wf_span_cycles(WF_SPAN_PARKS_SOON), 60000));
	CHECK(is_about((uint64_t)wf_cycles_ns(2500000), 1000000));
}

TEST(spans_are_as_long_by_a_slow_counter)
{
	begin(GHZ / 40);
	CHECK(is_about(wf_span_cycles(WF_SPAN_POLL), 5000));
	CHECK(is_about(wf_span_cycles(WF_SPAN_BRIEF_LOCK), 7));
	CHECK(is_about((uint64_t)wf_cycles_ns(25000), WF_MS));
}

TEST(spans_are_as_long_by_a_fast_counter)
{
	begin(5 * GHZ);
	CHECK(is_about(wf_span_cycles(WF_SPAN_POLL), 1000000));
	CHECK(is_about((uint64_t)wf_cycles_ns(5000000), WF_MS));
}

/* No product exceeds 64 bits. */
TEST(what_is_too_long_is_cut)
{
	static const uint64_t rates[] = { GHZ / 1000, GHZ / 40, GHZ, 5 * GHZ };

	for (size_t i = 0; i < ARRAY_LEN(rates); i++) {
		begin(rates[i]);
		CHECK(is_about((uint64_t)wf_cycles_ns(20 * hz), 20 * WF_SEC));
		CHECK(is_about((uint64_t)wf_cycles_ns(UINT64_MAX), 27 * WF_SEC));
	}
}

TEST(a_rate_that_has_hardly_changed_is_not_written)
{
	uint64_t was;

	begin(2 * GHZ);
	was = wf_rate.vtime_per_cycle;
	look(2 * GHZ + GHZ / 500);
	CHECK_EQ(wf_rate.vtime_per_cycle, was);
	look(3 * GHZ);
	CHECK(wf_rate.vtime_per_cycle < was);
}

TEST(a_child_keeps_what_its_parent_has_measured)
{
	begin(GHZ / 40);
	wf_rate_begin();
	CHECK(is_about(wf_span_cycles(WF_SPAN_POLL), 5000));
}
