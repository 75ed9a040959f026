// SPDX-License-Identifier: Apache-2.0
/*
 * The recording, taken out of a process or a core: events by time, and what is needed to understand them.
 *
 * Used by: all of this folder. Invariant: the target is only read, and never stopped.
 */
#ifndef WF_TRACE_TAKE_H
#define WF_TRACE_TAKE_H

#include "target/rings.h"
#include "target/threads.h"

/* A thread's name, or the words for an object that threads wait for. */
struct wf_take_name {
	uint64_t key;  /* tid, or the object */
	unsigned kind; /* of wait; 0: a thread */
	char text[96]; /* clean */
};

/* The memory of a process at a moment. */
struct wf_take_memory {
	int64_t ns; /* CLOCK_BOOTTIME */
	uint64_t bytes;
};

struct wf_take {
	const struct wf_target *target;
	const struct wf_layout *layout;
	struct wf_rings rings;
	char program[256]; /* clean */
	unsigned nr_workers, nr_threads;
	struct wf_take_name *names; /* by kind and key */
	size_t nr_names, names_room;
	/* A moment by both clocks, and nanoseconds for 2^32 cycles. */
	uint64_t cycles;
	int64_t ns;
	uint64_t rate;
	int64_t begin_ns, end_ns; /* of the part that is told */
	struct wf_take_memory *memory;
	size_t nr_memory;
};

/* False and t->error: the program keeps no events, or none can be had. Release with wf_take_done() in any case. */
bool wf_take_begin(struct wf_take *k, const struct wf_layout *l, struct wf_target *t);
/* The events that were written since the last look. False: out of memory. */
bool wf_take_look(struct wf_take *k);
/* All of what was there before: what comes from now on is of interest. */
void wf_take_forget(struct wf_take *k);
/* How much memory it has now; of a core nothing is noted. */
void wf_take_note_memory(struct wf_take *k);
/* The threads and their names at this moment; may be asked again. */
void wf_take_names(struct wf_take *k);
/*
 * Sorts, and cuts off what is older than last_ns, and what is older than the oldest event of a kernel thread that has
 * written over older ones: half of what went on is no picture.
 */
void wf_take_finish(struct wf_take *k, int64_t last_ns);
void wf_take_done(struct wf_take *k);

/* By CLOCK_BOOTTIME of the target's machine. */
int64_t wf_take_ns(const struct wf_take *k, uint64_t cycles);
const char *wf_take_thread(const struct wf_take *k, int64_t tid); /* NULL: no name is known */
/* "futex queue_lock", "fd 7", "sleep" */
void wf_take_wait(const struct wf_take *k, uint64_t kind, uint64_t what, char *out, size_t bytes);

#endif
