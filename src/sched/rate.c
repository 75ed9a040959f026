// SPDX-License-Identifier: Apache-2.0
/* The rate of the cycle counter; see rate.h. */
#include "sched/rate.h"

#define GUESS_HZ 2500000000ull
#define MEASURE_FROM_NS WF_MS
#define MEASURE_TO_NS (10 * WF_SEC) /* the clock is disciplined: its speed may change */
/* Every switch reads the rate: what has changed by less than a part in so many is not written. */
#define NOTICED 256u

#define VTIME_SHIFT 26 /* nanoseconds to WF_VTIME_NS with 32 bits of fraction */
_Static_assert(1ul << VTIME_SHIFT == (1ul << 32) / WF_VTIME_NS, "");

static const int64_t spans_ns[] = {
#define WF_SPAN(name, ns) [WF_SPAN_##name] = (ns),
	WF_SPANS
#undef WF_SPAN
};

struct wf_rate wf_rate;

static void note(uint64_t vtime_per_cycle)
{
	wf_store_hint(&wf_rate.vtime_per_cycle, vtime_per_cycle);
	for (uint32_t i = 0; i < ARRAY_LEN(spans_ns); i++)
		wf_store_hint(&wf_rate.span_cycles[i],
			      ((uint64_t)spans_ns[i] << VTIME_SHIFT) / vtime_per_cycle);
}

void wf_rate_begin(void)
{
	if (!wf_rate.vtime_per_cycle)
		note((uint64_t)WF_SEC * (1ull << VTIME_SHIFT) / GUESS_HZ);
}

void wf_rate_look(int64_t now, uint64_t cycles)
{
	int64_t took = now - wf_rate.from_ns;
	uint64_t is, was = wf_rate.vtime_per_cycle;

	if (!wf_rate.from_ns || took > MEASURE_TO_NS) {
		wf_rate.from_ns = now;
		wf_rate.from_cycles = cycles;
		return;
	}
	if (took < MEASURE_FROM_NS || cycles <= wf_rate.from_cycles)
		return;
	is = ((uint64_t)took << VTIME_SHIFT) / (cycles - wf_rate.from_cycles);
	if (is > was + was / NOTICED || is < was - was / NOTICED)
		note(is);
}
