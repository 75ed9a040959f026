// SPDX-License-Identifier: Apache-2.0
/* The event rings, write side; see trace.h. */
#include "trace/trace.h"

uint32_t wf_trace_on;

void wf_trace_write(struct wf_trace_ring *rings, enum wf_event ev, uint32_t tid, uint64_t a,
		    uint64_t b)
{
	struct wf_trace_ring *ring;
	struct wf_trace_event *e;

	if (wf_load_hint(&wf_probes_wanted))
		wf_probes_fire(ev, tid, a, b);
	if (!rings)
		return;
	ring = &rings[ev == WF_EV_SYSCALL];
	e = &ring->events[ring->next % WF_TRACE_EVENTS];
	*e = (struct wf_trace_event){ wf_cpu_cycles(), ev, tid, a, b };
	/* a reader that sees the count sees the event */
	wf_store_release(&ring->next, ring->next + 1);
}

const char *wf_trace_name(enum wf_event ev)
{
	static const char *const names[WF_EV_NR] = { "none",
#define WF_EVENT(number, name, text) name,
						     WF_EVENTS
#undef WF_EVENT
	};

	return ev < WF_EV_NR ? names[ev] : "?";
}
