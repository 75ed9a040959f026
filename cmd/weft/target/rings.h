// SPDX-License-Identifier: Apache-2.0
/*
 * The event rings of a program (src/trace/), read while it goes on, or from a core.
 *
 * Used by: threads.c, trace/. Invariant: an event is taken only as a whole: where its place says its number, and is not
 * written to before the copy is there. The target's word on its rings is checked before it is used.
 */
#ifndef WF_TARGET_RINGS_H
#define WF_TARGET_RINGS_H

#include "target/layout.h"

struct wf_ring_event {
	uint64_t cycles, a, b;
	int64_t tid; /* 0: the scheduler's own context, or a kernel thread that runs no threads */
	unsigned event;   /* the target's number; see wf_layout_name() */
	unsigned kthread; /* place in the target's list */
};

/* One moment by three clocks; cycles 0: there was none. */
struct wf_ring_moment {
	uint64_t cycles;
	int64_t monotonic, boottime;
};

struct wf_ring {
	uint64_t address, places, nr_places;
	uint64_t next; /* the first that was not looked at */
	uint64_t
		first; /* cycles of the oldest that was there at the first look, if older ones were not; 0: all were */
	unsigned kthread; /* place in the target's list */
	bool is_calls;
};

struct wf_rings {
	bool is_armed;  /* the program keeps events */
	bool has_calls; /* system calls, too */
	bool is_frozen;
	unsigned nr_lacking; /* kernel threads for whose rings it had no memory */
	struct wf_ring_moment began, frozen;
	struct wf_ring *rings;
	size_t nr_rings;
	struct wf_ring_event *events;
	size_t nr_events, room;
	uint64_t nr_lost; /* overwritten between two looks, or during one */
	bool is_full;     /* no more are taken */
};

/* The target's description of itself. */
void wf_rings_begin(struct wf_rings *r, const struct wf_layout *l, const struct wf_target *t);

/*
 * Takes what was written since the last look, at most the last `most` of each ring; the events are in no order. False: out
 * of memory, with those that were taken before.
 */
bool wf_rings_look(struct wf_rings *r, const struct wf_layout *l, const struct wf_target *t,
		   uint64_t most);

/* How many events there ever were, and how many of them newer ones have overwritten. */
void wf_rings_count(const struct wf_layout *l, const struct wf_target *t, uint64_t *out_written,
		    uint64_t *out_lost);

/* By time. */
void wf_rings_sort(struct wf_rings *r);
void wf_rings_done(struct wf_rings *r);

#endif
