// SPDX-License-Identifier: Apache-2.0
/* Reading the event rings; see rings.h. */
#include "target/rings.h"

#include <stdlib.h>
#include <string.h>

#define MAX_KTHREADS 32768u
#define MAX_RINGS 2u
#define MAX_PLACES (1ull << 25) /* 1 GiB */
#define MAX_EVENTS (1ull << 25) /* of all looks */
#define EVENTS_AT_ONCE 1024u

static struct wf_ring_moment moment_of(const struct wf_layout *l, const char *trace,
				       enum wf_layout_field which)
{
	const char *o = trace + l->field[which].offset;

	return (struct wf_ring_moment){
		.cycles = wf_layout_get(l, o, WF_L_MOMENT_CYCLES),
		.monotonic = (int64_t)wf_layout_get(l, o, WF_L_MOMENT_MONOTONIC),
		.boottime = (int64_t)wf_layout_get(l, o, WF_L_MOMENT_BOOTTIME),
	};
}

void wf_rings_begin(struct wf_rings *r, const struct wf_layout *l, const struct wf_target *t)
{
	char *trace = malloc(WF_L_MAX_OBJECT);
	uint64_t keeps;

	*r = (struct wf_rings){ 0 };
	if (trace && l->trace && wf_layout_copy(l, t, l->trace, WF_L_TRACE, trace)) {
		keeps = wf_layout_get(l, trace, WF_L_TR_KEEPS);
		r->is_armed = keeps;
		r->has_calls = keeps & wf_layout_value(l, "const", "trace_calls", 0);
		r->is_frozen = keeps && !wf_layout_get(l, trace, WF_L_TR_ON);
		r->nr_lacking = (unsigned)wf_layout_get(l, trace, WF_L_TR_NR_LACKING);
		r->began = moment_of(l, trace, WF_L_TR_BEGAN);
		r->frozen = moment_of(l, trace, WF_L_TR_FROZEN);
	}
	free(trace);
}

static bool make_room(struct wf_rings *r, size_t nr)
{
	size_t room = 2 * r->room > r->nr_events + nr ? 2 * r->room : r->nr_events + nr;
	void *p;

	if (r->nr_events + nr <= r->room)
		return true;
	p = realloc(r->events, room * sizeof(*r->events));
	if (!p)
		return false;
	r->events = p;
	r->room = room;
	return true;
}

/* Is it event number n, and all of it there? */
static bool is_whole(const struct wf_layout *l, const char *o, uint64_t n, unsigned kind_bits)
{
	uint64_t word = wf_layout_get(l, o, WF_L_E_EVENT) & UINT32_MAX;

	return word >> kind_bits == (n & (UINT32_MAX >> kind_bits)) &&
	       (word & ((1u << kind_bits) - 1));
}

static void take_event(struct wf_rings *r, const struct wf_layout *l, const char *o,
		       const struct wf_ring *ring, unsigned kind_bits)
{
	r->events[r->nr_events++] = (struct wf_ring_event){
		.cycles = wf_layout_get(l, o, WF_L_E_CYCLES),
		.event = (unsigned)wf_layout_get(l, o, WF_L_E_EVENT) & ((1u << kind_bits) - 1),
		.tid = (int64_t)wf_layout_get(l, o, WF_L_E_TID),
		.a = wf_layout_get(l, o, WF_L_E_A),
		.b = wf_layout_get(l, o, WF_L_E_B),
		.kthread = ring->kthread,
	};
}

/* Events lo to hi, in pieces that do not go over the ring's end. */
static void copy_events(struct wf_rings *r, struct wf_ring *ring, const struct wf_layout *l,
			const struct wf_target *t, uint64_t lo, uint64_t hi, char *piece)
{
	uint64_t bytes = l->field[WF_L_EVENT].size;
	unsigned kind_bits = (unsigned)wf_layout_value(l, "const", "trace_kind_bits", 8) & 31;

	ring->next = hi;
	while (lo < hi) {
		uint64_t at = lo % ring->nr_places, n = hi - lo, count;
		size_t before = r->nr_events;

		n = n < EVENTS_AT_ONCE ? n : EVENTS_AT_ONCE;
		n = n < ring->nr_places - at ? n : ring->nr_places - at;
		if (!wf_target_read(t, ring->places + at * bytes, piece, n * bytes)) {
			r->nr_lost += n;
			lo += n;
			continue;
		}
		/* The number of each says whether it was overwritten before, this one whether it was meanwhile. */
		count = wf_layout_fetch(l, t, ring->address, WF_L_RING_NEXT);
		for (uint64_t i = 0; i < n; i++) {
			const char *o = piece + i * bytes;

			if (lo + i + ring->nr_places >= count && is_whole(l, o, lo + i, kind_bits))
				take_event(r, l, o, ring, kind_bits);
			else if (lo + i + 1 == hi)
				ring->next = lo + i; /* it is being written */
			else
				r->nr_lost++;
		}
		if (r->nr_events > before && ring->first == 1)
			ring->first = r->events[before].cycles;
		lo += n;
	}
}

static bool look_at_ring(struct wf_rings *r, struct wf_ring *ring, const struct wf_layout *l,
			 const struct wf_target *t, uint64_t most, char *piece)
{
	uint64_t count = wf_layout_fetch(l, t, ring->address, WF_L_RING_NEXT), lo = ring->next;
	uint64_t most_here = most < ring->nr_places ? most : ring->nr_places;
	bool is_first = !ring->first && !ring->next;

	if (count <= lo || r->is_full)
		return true;
	if (count - lo > most_here) {
		if (!is_first)
			r->nr_lost += count - most_here - lo;
		lo = count - most_here;
		if (is_first)
			ring->first = 1; /* to be found out */
	}
	if (r->nr_events + (count - lo) > MAX_EVENTS) {
		r->is_full = true;
		return true;
	}
	if (!make_room(r, count - lo))
		return false;
	copy_events(r, ring, l, t, lo, count, piece);
	return true;
}

/* Kernel threads come while one looks, and never go from the list. */
static bool find_rings(struct wf_rings *r, const struct wf_layout *l, const struct wf_target *t)
{
	uint64_t nr = wf_layout_fetch(l, t, l->runtime, WF_L_RT_NR_KTHREADS), at, known;
	uint64_t nr_rings = wf_layout_value(l, "const", "trace_rings", 0);
	void *p;

	if (nr > MAX_KTHREADS)
		nr = MAX_KTHREADS;
	if (!nr_rings || nr_rings > MAX_RINGS)
		return true;
	known = r->nr_rings / nr_rings;
	if (nr <= known)
		return true;
	at = wf_layout_fetch(l, t, l->runtime, WF_L_RT_KTHREADS);
	p = realloc(r->rings, nr * nr_rings * sizeof(*r->rings));
	if (!p)
		return false;
	r->rings = p;
	for (uint64_t i = known; i < nr; i++) {
		uint64_t k = 0, rings = 0;

		if (wf_target_read(t, at + i * sizeof(k), &k, sizeof(k)) && k)
			rings = wf_layout_fetch(l, t, k, WF_L_K_RING);
		for (uint64_t n = 0; n < nr_rings; n++) {
			uint64_t a = rings ? rings + n * l->field[WF_L_RING].size : 0;
			uint64_t mask = a ? wf_layout_fetch(l, t, a, WF_L_RING_MASK) : 0;
			struct wf_ring *ring = &r->rings[r->nr_rings++];

			*ring = (struct wf_ring){ .address = a,
						  .kthread = (unsigned)i,
						  .is_calls = n == 1 };
			if (a && mask < MAX_PLACES && !(mask & (mask + 1))) {
				ring->places = wf_layout_fetch(l, t, a, WF_L_RING_PLACES);
				ring->nr_places = mask + 1;
			}
		}
	}
	return true;
}

bool wf_rings_look(struct wf_rings *r, const struct wf_layout *l, const struct wf_target *t,
		   uint64_t most)
{
	char *piece = malloc((size_t)EVENTS_AT_ONCE * WF_L_MAX_EVENT);
	bool is_ok = piece && find_rings(r, l, t);

	for (size_t i = 0; is_ok && i < r->nr_rings; i++) {
		if (r->rings[i].places)
			is_ok = look_at_ring(r, &r->rings[i], l, t, most, piece);
	}
	free(piece);
	return is_ok;
}

void wf_rings_count(const struct wf_layout *l, const struct wf_target *t, uint64_t *out_written,
		    uint64_t *out_lost)
{
	struct wf_rings r;

	*out_written = *out_lost = 0;
	wf_rings_begin(&r, l, t);
	(void)(r.is_armed && find_rings(&r, l, t));
	for (size_t i = 0; i < r.nr_rings; i++) {
		const struct wf_ring *ring = &r.rings[i];
		uint64_t count = ring->places ? wf_layout_fetch(l, t, ring->address, WF_L_RING_NEXT)
					      : 0;

		*out_written += count;
		*out_lost += count > ring->nr_places ? count - ring->nr_places : 0;
	}
	wf_rings_done(&r);
}

static int by_time(const void *a, const void *b)
{
	const struct wf_ring_event *x = a, *y = b;

	if (x->cycles != y->cycles)
		return x->cycles < y->cycles ? -1 : 1;
	return x->kthread < y->kthread ? -1 : x->kthread > y->kthread;
}

void wf_rings_sort(struct wf_rings *r)
{
	if (r->nr_events)
		qsort(r->events, r->nr_events, sizeof(*r->events), by_time);
}

void wf_rings_done(struct wf_rings *r)
{
	free(r->rings);
	free(r->events);
	*r = (struct wf_rings){ 0 };
}
