// SPDX-License-Identifier: Apache-2.0
/* More workers than processors; see crowd.h. */
#include "sched/crowd.h"
#include "sched/inbox.h"
#include "sys/cpu.h"
#include "sys/slice.h"

/* Quotas do not count: where one is reached nobody runs. */
void wf_crowd_count(void)
{
	wf_rt.is_crowded = wf_rt.nr_workers > 1 && wf_rt.nr_workers > sys_cpu_allowed();
}

void wf_crowd_begin_door(void)
{
	if (wf_rt.is_crowded)
		wf_rt.kernel_slice_ns = sys_slice_ask(SYS_SLICE_SHORT_NS);
}

void wf_crowd_begin_carrier(void)
{
	if (wf_rt.is_crowded && wf_rt.kernel_slice_ns)
		(void)sys_slice_ask(wf_rt.kernel_slice_ns);
}

bool wf_crowd_offer(struct wf_worker *w, int64_t now)
{
	int64_t told_at = wf_load_hint(&w->told_at);

	if (!told_at)
		wf_store_hint(&w->told_at, now);
	if (!wf_rt.is_crowded || !told_at || now - told_at < WF_CROWD_ANSWER_NS ||
	    !wf_load_relaxed(&w->inbox))
		return false;
	wf_store_release(&wf_rt.offers, w);
	return true;
}

struct wf_thread *wf_crowd_take(void)
{
	struct wf_worker *from = wf_exchange(&wf_rt.offers, (struct wf_worker *)NULL);

	return from ? wf_inbox_take(from) : NULL;
}
