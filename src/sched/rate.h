// SPDX-License-Identifier: Apache-2.0
/*
 * How fast the cycle counter goes, and what the scheduler measures by it: a look at the counter costs a tenth of one at the
 * clock.
 *
 * A span of time that is compared with the counter is a row here, in nanoseconds. The monitor measures the rate and turns all
 * rows into cycles when it has changed; until the first time the counter is taken for one of 2.5 GHz.
 *
 * Used by: the files that the rows name. Calls nothing.
 */
#ifndef WF_SCHED_RATE_H
#define WF_SCHED_RATE_H

#include "base/atomic.h"
#include "sched/runq.h"

/*
 * WF_SPAN(name, nanoseconds)
 *
 *   BRIEF_LOCK   gather.c: such a wait is as long as some moves of a cache line between distant processors.
 *   PARKS_SOON   park.c: less than waking another processor costs.
 *   YIELDS       park.c: so far apart the kernel is told of yields, which costs a few per cent at most.
 *   FINDS        park.c: a thread that never waits for its data has the worker that long, however many are queued.
 *   ROUND        park.c: a few who are queued wait so long in all for such threads.
 *   POLL         worker.c: events wait so long at most while nobody sleeps in the poller.
 *   PAUSE        shuffle.c: the longest of the usual pauses at random.
 *   COUNTED      what is longer is not turned into time: products stay below 1 << 64.
 */
#define WF_SPANS                                                                                   \
	WF_SPAN(BRIEF_LOCK, 280)                                                                   \
	WF_SPAN(PARKS_SOON, 24 * WF_US)                                                            \
	WF_SPAN(YIELDS, 24 * WF_US)                                                                \
	WF_SPAN(FINDS, 100 * WF_US)                                                                \
	WF_SPAN(ROUND, WF_MS)                                                                      \
	WF_SPAN(POLL, 200 * WF_US)                                                                 \
	WF_SPAN(PAUSE, 800)                                                                        \
	WF_SPAN(COUNTED, 27 * WF_SEC)

enum wf_span {
#define WF_SPAN(name, ns) WF_SPAN_##name,
	WF_SPANS
#undef WF_SPAN
		WF_NR_SPANS
};

struct wf_rate {
	/* (a) hints, written by the monitor: WF_VTIME_NS per cycle, with 32 bits of fraction; and the rows */
	uint64_t vtime_per_cycle;
	uint64_t span_cycles[WF_NR_SPANS];
	/* monitor only: where the measurement began */
	uint64_t from_cycles;
	int64_t from_ns;
} WF_ALIGNED(WF_CACHE_LINE);
extern struct wf_rate wf_rate;

WF_INLINE uint64_t wf_span_cycles(enum wf_span span)
{
	return wf_load_hint(&wf_rate.span_cycles[span]);
}

/* In WF_VTIME_NS. */
WF_INLINE uint64_t wf_cycles_vtime(uint64_t cycles)
{
	return WF_MIN(cycles, wf_span_cycles(WF_SPAN_COUNTED)) *
		       wf_load_hint(&wf_rate.vtime_per_cycle) >>
	       32;
}

WF_INLINE int64_t wf_cycles_ns(uint64_t cycles)
{
	return (int64_t)wf_cycles_vtime(cycles) * WF_VTIME_NS;
}

/* Before the first thread runs. A child of fork() knows what its parent has measured. */
void wf_rate_begin(void);
/* By the monitor, which looks at both anyway. */
void wf_rate_look(int64_t now, uint64_t cycles);

#endif
