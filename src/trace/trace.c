// SPDX-License-Identifier: Apache-2.0
/* The event rings, write side; see trace.h. */
#include "trace/trace.h"

#define HEAD_BYTES 4096u /* the rings themselves; their events begin behind it */

_Static_assert(sizeof(struct wf_trace_event) == 32, "32,768 events in 1 MiB");
_Static_assert(WF_EV_NR <= 1u << WF_TRACE_KIND_BITS, "the rest of the word is the number");

/* In a section of the file, not of zeroes: the kernel counts who wants probes by its place there. */
__attribute__((section(".probes"))) struct wf_trace wf_trace = { .keeps = 0 };

_Static_assert(offsetof(struct wf_trace, probes) == 4, "as probes.c tells it");

static bool is_call(enum wf_event ev)
{
	return ev == WF_EV_SYSCALL || ev == WF_EV_RETURN;
}

static void prepare(uint32_t keeps, uint64_t bytes, const struct wf_trace_moment *now)
{
	uint64_t rounded = WF_TRACE_MIN_BYTES;

	while (rounded < WF_TRACE_MAX_BYTES && 2 * rounded <= bytes)
		rounded *= 2;
	wf_trace.ring_bytes = rounded;
	wf_trace.began = *now;
	wf_store_release(&wf_trace.keeps, keeps); /* pairs with wf_trace_bytes() */
}

void wf_trace_arm(uint32_t keeps, uint64_t bytes, const struct wf_trace_moment *now)
{
	prepare(keeps, bytes, now);
	wf_store_release(&wf_trace.on, keeps);
}

static uint32_t kinds_of(uint64_t asked)
{
	return (uint32_t)asked & (WF_TRACE_SCHED | WF_TRACE_CALLS);
}

bool wf_trace_take_over(uint64_t asked, const struct wf_trace_moment *now)
{
	if (!(asked & WF_TRACE_ASKED) || !kinds_of(asked) || wf_trace.keeps)
		return false;
	prepare(kinds_of(asked), asked >> WF_TRACE_ASKED_BYTES, now);
	return true;
}

void wf_trace_switch(uint64_t asked)
{
	if ((asked & WF_TRACE_ASKED) && !wf_trace.frozen.cycles)
		wf_store_release(&wf_trace.on, kinds_of(asked) ? wf_trace.keeps : 0u);
}

void wf_trace_freeze(const struct wf_trace_moment *now)
{
	if (!wf_exchange(&wf_trace.on, 0u))
		return;
	wf_trace.frozen = *now;
}

size_t wf_trace_bytes(void)
{
	uint32_t keeps = wf_load_acquire(&wf_trace.keeps);

	return keeps ? HEAD_BYTES + wf_trace.ring_bytes * (keeps & WF_TRACE_CALLS ? 2 : 1) : 0;
}

struct wf_trace_ring *wf_trace_init(void *memory)
{
	struct wf_trace_ring *rings = memory;
	char *places = (char *)memory + HEAD_BYTES;

	for (uint32_t i = 0; rings && i < WF_TRACE_RINGS; i++) {
		rings[i].mask = wf_trace.ring_bytes / sizeof(struct wf_trace_event) - 1;
		if (wf_trace.keeps & (i ? WF_TRACE_CALLS : WF_TRACE_SCHED))
			rings[i].places = (struct wf_trace_event *)places;
		places += wf_trace.ring_bytes;
	}
	return rings;
}

void wf_trace_write(struct wf_trace_ring *rings, enum wf_event ev, uint32_t tid, uint64_t a,
		    uint64_t b)
{
	struct wf_trace_ring *ring;
	struct wf_trace_event *e;
	uint64_t n;

	if (wf_load_hint(&wf_trace.probes))
		wf_probes_fire(ev, tid, a, b);
	if (!rings || !wf_load_hint(&wf_trace.on))
		return; /* probes may be wanted when the rings are frozen */
	ring = &rings[is_call(ev)];
	if (!ring->places)
		return;
	n = wf_cpu_claim(&ring->next);
	e = &ring->places[n & ring->mask];
	wf_store_release(&e->event, 0u);
	/* each after the 0 and after the claim; pairs with the reader's second look at the count */
	wf_store_release(&e->cycles, wf_cpu_cycles());
	wf_store_release(&e->tid, tid);
	wf_store_release(&e->a, a);
	wf_store_release(&e->b, b);
	/* who sees the number sees the event */
	wf_store_release(&e->event, (uint32_t)n << WF_TRACE_KIND_BITS | ev);
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
