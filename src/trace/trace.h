// SPDX-License-Identifier: Apache-2.0
/*
 * The event rings: what happened last, per kernel thread, for dumps, traces and post-mortems.
 *
 * Wait-free: each kernel thread writes its own rings and overwrites the oldest entry. Off costs one
 * predicted branch on a global. A reader (weft trace, weft dump, a core file) takes what it finds.
 *
 * System calls have a ring of their own: of a program that makes many they would leave nothing of what the scheduler did.
 *
 * Invariant: a place is claimed by counting, in one instruction, so that a handler that interrupts the writer takes the next
 * one. The place of event n says n itself, as the last of its words that is written, and says nothing while the others are.
 * A reader takes event n where it finds that number, and only if the count has not passed n by a whole ring when it has its
 * copy: then the place was not written to meanwhile. tests/model/rings.c plays it.
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
	WF_HANDOFF_UNKNOWN, /* before a call of a kind that was never seen to return soon */
};

#define WF_TRACE_RINGS 2u /* the scheduler's, the calls' */

#define WF_TRACE_KIND_BITS 8u /* of the word event; the rest is the event's number */

struct wf_trace_event {
	uint64_t cycles;
	uint32_t event; /* (a) 0 while the others are written */
	uint32_t tid;   /* weft thread that ran, 0 in scheduler context */
	uint64_t a, b;
};

struct wf_trace_ring {
	uint64_t next;                 /* (o), and its handlers: events ever written */
	uint64_t mask;                 /* (c) number of places, less 1 */
	struct wf_trace_event *places; /* (c) NULL: these are not kept */
};

/* The same moment by all clocks, so that a reader can convert cycles. */
struct wf_trace_moment {
	uint64_t cycles;
	int64_t monotonic, boottime;
};

#define WF_TRACE_SCHED 1u
#define WF_TRACE_CALLS 2u

#define WF_TRACE_MIN_BYTES 4096u
#define WF_TRACE_MAX_BYTES (1u << 30)
#define WF_TRACE_RECORD_BYTES (1u << 20) /* of each ring: 32,768 events */
#define WF_TRACE_FILE_BYTES (1u << 17)   /* where all that is asked for is a file in the end */

struct wf_trace {
	union {
		struct {
			uint32_t on; /* (a) WF_TRACE_*: what is written now; 0 freezes what was */
			uint16_t probes; /* (a) the semaphore of the USDT probes; see probes.h */
		};
		uint64_t
			wanted; /* both: an event that nobody wants costs one load and one branch */
	};
	uint32_t keeps; /* (a) the same as when rings were first given out; 0: there are none */
	uint64_t ring_bytes; /* (p) with keeps */
	uint32_t nr_lacking; /* (a) kernel threads for whose rings there was no memory */
	struct wf_trace_moment began, frozen; /* frozen: cycles 0 until then */
	/*
	 * (a) written from outside, by weft trace --arm; taken back to 0 when it was heard. WF_TRACE_ASKED, with WF_TRACE_*,
	 * none of them meaning that nothing is to be written any more; and with the bytes of a ring, which are counted only
	 * where there are none yet.
	 */
	uint64_t asked;
};

#define WF_TRACE_PROBES ((uint64_t)UINT16_MAX << 32) /* of wanted */
#define WF_TRACE_ASKED 0x80u
#define WF_TRACE_ASKED_BYTES 8u /* from this bit on */

extern struct wf_trace wf_trace;

/* keeps: WF_TRACE_*. bytes: of each ring; what is no power of two is rounded down. Before the first kernel thread. */
void wf_trace_arm(uint32_t keeps, uint64_t bytes, const struct wf_trace_moment *now);

/* Rings were asked for from outside, where there are none yet: they are to be given out. False: they were before. */
bool wf_trace_take_over(uint64_t asked, const struct wf_trace_moment *now);
/* Events are written from now on, or not, as was asked. What was frozen stays so. */
void wf_trace_switch(uint64_t asked);

/* Nothing is written any more, so that the last events stay. */
void wf_trace_freeze(const struct wf_trace_moment *now);

/* The size of the rings of a kernel thread, 0: nothing is kept. */
size_t wf_trace_bytes(void);
/* Makes rings of so much zeroed memory; NULL of NULL. */
struct wf_trace_ring *wf_trace_init(void *memory);

/* rings: WF_TRACE_RINGS of them, or NULL. */
void wf_trace_write(struct wf_trace_ring *rings, enum wf_event ev, uint32_t tid, uint64_t a,
		    uint64_t b);
const char *wf_trace_name(enum wf_event ev);

WF_INLINE enum wf_event wf_trace_kind(const struct wf_trace_event *e)
{
	return (enum wf_event)(wf_load_acquire(&e->event) & ((1u << WF_TRACE_KIND_BITS) - 1));
}

#endif
