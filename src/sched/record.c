// SPDX-License-Identifier: Apache-2.0
/* Giving out rings; see record.h. */
#include "sched/record.h"
#include "sched/runtime.h"
#include "sys/syscall.h"

#define CLOCK_MONOTONIC 1
#define CLOCK_BOOTTIME 7

void wf_record_unmap(struct wf_trace_ring *rings)
{
	if (rings)
		sys_unmap(rings, wf_trace_bytes());
}

void wf_record_give(struct wf_kthread *k)
{
	struct wf_trace_ring *none = NULL, *rings;
	size_t bytes = wf_trace_bytes();
	void *p;

	if (!bytes || wf_load_relaxed(&k->ring))
		return;
	p = sys_map(bytes);
	if (!p) {
		wf_fetch_add(&wf_trace.nr_lacking, 1u);
		return;
	}
	rings = wf_trace_init(p);
	if (!wf_cas(&k->ring, &none, rings)) /* its owner finds them whole: wf_cas() releases */
		wf_record_unmap(rings);
}

static void give_all(void)
{
	/* One that has added itself to the list before is seen in it; one that does later sees that events are kept. */
	wf_spin_lock(&wf_rt.lock);
	wf_spin_unlock(&wf_rt.lock);
	for (uint32_t i = 0; i < wf_load_acquire(&wf_rt.nr_kthreads); i++)
		wf_record_give(wf_load_acquire(&wf_rt.kthreads[i]));
}

void wf_record_look(void)
{
	struct wf_trace_moment now = { 0 };
	uint64_t asked;

	if (WF_LIKELY(!wf_load_hint(&wf_trace.asked)))
		return;
	asked = wf_exchange(&wf_trace.asked, 0ul);
	now.cycles = wf_cpu_cycles();
	(void)sys_clock_read(CLOCK_MONOTONIC, &now.monotonic);
	(void)sys_clock_read(CLOCK_BOOTTIME, &now.boottime);
	if (wf_trace_take_over(asked, &now))
		give_all();
	wf_trace_switch(asked);
}
