// SPDX-License-Identifier: Apache-2.0
/*
 * The event rings: what happened last, per kernel thread, for dumps and post-mortems.
 *
 * Wait-free: each kernel thread writes its own rings and overwrites the oldest entry. Off costs one
 * predicted branch on a global. A reader (weft dump, gdb, a core file) takes what it finds.
 *
 * System calls have a ring of their own: of a program that makes many they would leave nothing of what the scheduler did.
 */
#ifndef WF_TRACE_TRACE_H
#define WF_TRACE_TRACE_H

#include "arch/arch.h"
#include "base/atomic.h"
#include "trace/event_list.h"
#include "trace/probes.h"

enum wf_event {
	WF_EV_NONE,
#define WF_EVENT(number, name, text) WF_EV_##number,
	WF_EVENTS
#undef WF_EVENT
		WF_EV_NR
};

/* Why a worker was passed on. */
enum wf_handoff {
	WF_HANDOFF_LAZY, /* left open for as long as a call waits for the disk: see wf_call_enter_lazy() */
	WF_HANDOFF_CERTAIN, /* before a call that is certain to block */
	WF_HANDOFF_MONITOR, /* the monitor found the same call twice; its own event, not the caller's */
};

#define WF_TRACE_EVENTS 2048u
#define WF_TRACE_RINGS 2u /* the scheduler's, the calls' */

struct wf_trace_event {
	uint64_t cycles;
	uint32_t event;
	uint32_t tid; /* weft thread that ran, 0 in scheduler context */
	uint64_t a, b;
};

struct wf_trace_ring {
	uint64_t next; /* (o) events ever written */
	struct wf_trace_event events[WF_TRACE_EVENTS];
};

extern uint32_t wf_trace_on;

/* rings: WF_TRACE_RINGS of them, allocated when a kernel thread is made while tracing is on; or NULL. */
void wf_trace_write(struct wf_trace_ring *rings, enum wf_event ev, uint32_t tid, uint64_t a,
		    uint64_t b);
const char *wf_trace_name(enum wf_event ev);

#endif
