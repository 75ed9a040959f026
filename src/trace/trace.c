// SPDX-License-Identifier: Apache-2.0
/* The event ring, write side; see trace.h. */
#include "trace/trace.h"

uint32_t wf_trace_on;

void wf_trace_write(struct wf_trace_ring *ring, enum wf_event ev, uint32_t tid, uint64_t a,
		    uint64_t b)
{
	struct wf_trace_event *e;

	if (!ring)
		return;
	e = &ring->events[ring->next % WF_TRACE_EVENTS];
	*e = (struct wf_trace_event){ wf_cpu_cycles(), ev, tid, a, b };
	/* a reader that sees the count sees the event */
	wf_store_release(&ring->next, ring->next + 1);
}

const char *wf_trace_name(enum wf_event ev)
{
	static const char *const names[WF_EV_NR] = {
		[WF_EV_NONE] = "none",     [WF_EV_SPAWN] = "spawn",
		[WF_EV_EXIT] = "exit",     [WF_EV_PARK] = "park",
		[WF_EV_UNPARK] = "unpark", [WF_EV_RUN] = "run",
		[WF_EV_YIELD] = "yield",   [WF_EV_PREEMPT] = "preempt",
		[WF_EV_STEAL] = "steal",   [WF_EV_HANDOFF] = "handoff",
		[WF_EV_IDLE] = "idle",     [WF_EV_SYSCALL] = "syscall",
		[WF_EV_SIGNAL] = "signal", [WF_EV_HANDLER] = "handler",
		[WF_EV_KICK] = "kick",     [WF_EV_REST] = "rest",
	};

	return ev < WF_EV_NR ? names[ev] : "?";
}
