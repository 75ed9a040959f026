// SPDX-License-Identifier: Apache-2.0
/*
 * The event ring: what happened last, per kernel thread, for dumps and post-mortems.
 *
 * Wait-free: each kernel thread writes its own ring and overwrites the oldest entry. Off costs one
 * predicted branch on a global. A reader (weft dump, gdb, a core file) takes what it finds.
 */
#ifndef WF_TRACE_TRACE_H
#define WF_TRACE_TRACE_H

#include "arch/x86_64/cpu.h"
#include "base/atomic.h"

/* One line per event: the enum name, and what arguments a and b mean. */
enum wf_event {
	WF_EV_NONE,
	WF_EV_SPAWN,   /* a: new tid */
	WF_EV_EXIT,    /* */
	WF_EV_PARK,    /* a: wait kind, b: what for */
	WF_EV_UNPARK,  /* a: woken tid, b: reason */
	WF_EV_RUN,     /* a: tid switched to */
	WF_EV_YIELD,   /* */
	WF_EV_PREEMPT, /* a: interrupted rip */
	WF_EV_STEAL,   /* a: victim worker, b: number taken */
	WF_EV_HANDOFF, /* a: worker, b: enum wf_handoff */
	WF_EV_IDLE,    /* a: 1 poller, 0 sleeper */
	WF_EV_SYSCALL, /* a: number, b: first argument */
	WF_EV_SIGNAL,  /* a: signal, b: target tid */
	WF_EV_HANDLER, /* a: signal, b: handler address */
	WF_EV_KICK,    /* a: target kernel tid, b: rip it was seen at */
	WF_EV_REST,    /* */
	WF_EV_NR
};

/* Why a worker was passed on. */
enum wf_handoff {
	WF_HANDOFF_LAZY, /* left open for as long as a call waits for the disk: see wf_call_enter_lazy() */
	WF_HANDOFF_CERTAIN, /* before a call that is certain to block */
	WF_HANDOFF_MONITOR, /* the monitor found the same call twice; its own event, not the caller's */
};

#define WF_TRACE_EVENTS 2048u

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

/* The event rings are allocated when a kernel thread is made while tracing is on; ring may be NULL. */
void wf_trace_write(struct wf_trace_ring *ring, enum wf_event ev, uint32_t tid, uint64_t a,
		    uint64_t b);
const char *wf_trace_name(enum wf_event ev);

#endif
