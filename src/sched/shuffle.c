// SPDX-License-Identifier: Apache-2.0
/* Random schedules; see shuffle.h. How often what happens: so that programs take about twice as long. */
#include "sched/shuffle.h"
#include "sched/rate.h"

#define LONGEST_DELAY_NS (2 * WF_MS)
#define SHORTEST_TICK_NS (50 * WF_US)
#define LONGEST_TICK_NS WF_MS

uint32_t wf_shuffle_below(uint32_t n)
{
	struct wf_kthread *k = wf_own_kthread();

	k->rng = k->rng * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)((k->rng >> 32) * n >> 32);
}

static bool once_in(uint32_t n)
{
	return wf_shuffle_below(n) == 0;
}

bool wf_shuffle_enters(void)
{
	return once_in(4);
}

void wf_shuffle_leave(void)
{
	if (once_in(4))
		(void)wf_fetch_or(&wf_self()->attention, WF_ATT_RESCHED);
}

struct wf_worker *wf_shuffle_worker(struct wf_worker *self)
{
	struct wf_worker *w = &wf_rt.workers[wf_shuffle_below(wf_rt.nr_workers)];

	return w != self && once_in(2) ? w : NULL;
}

void wf_shuffle_order(struct wf_thread *t)
{
	if (once_in(2))
		wf_runq_charge(t, wf_shuffle_below(LONGEST_DELAY_NS / WF_VTIME_NS));
}

uint32_t wf_shuffle_preempts(void)
{
	if (once_in(2))
		return 0;
	return once_in(4) ? WF_PREEMPT_SLICE : WF_PREEMPT_WAKE;
}

int64_t wf_shuffle_tick_ns(void)
{
	return SHORTEST_TICK_NS + wf_shuffle_below(LONGEST_TICK_NS);
}

void wf_shuffle_pause(void)
{
	uint64_t began = wf_cpu_cycles(), longest = wf_span_cycles(WF_SPAN_PAUSE), cycles;

	if (!once_in(8))
		return;
	cycles = wf_shuffle_below(once_in(64) ? 100 * longest : longest);
	while (wf_cpu_cycles() - began < cycles)
		;
}
