// SPDX-License-Identifier: Apache-2.0
/*
 * The run queue of one worker: an active and an expired array of levels, and a hand-off slot.
 *
 * The O(1) scheduler's idea without its sleep estimator: a thread with slice left goes into active, one
 * without into expired with a fresh slice; when active is empty the arrays swap. So every queued thread
 * runs before any thread runs twice through a full slice. A nice thread sits out rounds by its weight, and the other
 * kind gets several slices in a round.
 *
 * Invariant: a thread is in at most one queue, and whoever takes it off owns it. All fields under the lock;
 * nr may be read without it as a hint.
 */
#ifndef WF_SCHED_RUNQ_H
#define WF_SCHED_RUNQ_H

#include "base/spin.h"
#include "sched/thread.h"

struct wf_level {
	struct wf_thread *head, *tail;
};

struct wf_array {
	struct wf_level woken;
	uint64_t bitmap;
	struct wf_level level[WF_LEVELS];
};

/* Rounds ahead of the active one in which a thread may wait: nice 19 sits out 68. A power of two. */
#define WF_ROUNDS 128u

struct wf_runq {
	struct wf_spin lock;
	/* (c) there is only one worker: nobody but its carrier uses the queue, so no lock is taken */
	bool is_private;
	uint32_t nr;                        /* (a) queued threads, the hand-off slot included */
	struct wf_thread *handoff;          /* (q) woken last by the running thread: runs next */
	uint32_t handoff_streak;            /* (q) hand-offs in a row */
	uint32_t active;                    /* (q) index of the active array */
	struct wf_array array[2];           /* (q) */
	uint32_t round;                     /* (q) how often active ran empty: the present round */
	uint64_t later_map[WF_ROUNDS / 64]; /* (q) */
	struct wf_level later[WF_ROUNDS];   /* (q) by round: what joins the active array then */
};

enum wf_place {
	WF_PLACE_HANDOFF, /* run next, within the waker's slice; what was there goes to WOKEN */
	WF_PLACE_WOKEN,   /* before those that used the CPU last */
	WF_PLACE_TAIL,
	WF_PLACE_EXPIRED,
};

void wf_runq_push(struct wf_runq *q, struct wf_thread *t, enum wf_place place);
/* t used a slice, or what it wanted of it. It sits out the rounds that this costs at its level. */
void wf_runq_push_used(struct wf_runq *q, struct wf_thread *t);
/* The same for one that used it on another queue, whose rounds are not these. */
void wf_runq_push_moved(struct wf_runq *q, struct wf_thread *t);
/* Somebody at that level or before it is in the queue, and sits out no rounds. */
bool wf_runq_has_up_to(struct wf_runq *q, unsigned level);
/* t, which runs, used a slice. True: no other thread's turn comes before its next one, so it keeps the worker. */
bool wf_runq_keeps(struct wf_runq *q, struct wf_thread *t);
/* out_new_slice: false when the thread came from the hand-off slot and inherits the slice. */
struct wf_thread *wf_runq_pop(struct wf_runq *q, bool *out_new_slice);
/* The running thread did not give way in time: the thread that it woke last waits like all others. */
void wf_runq_end_handoff(struct wf_runq *q);

/* What a thief may take besides ordinary threads. */
enum wf_greed {
	WF_GREED_NONE, /* leave the hand-off slot, and threads that gather at a lock with all behind them */
	WF_GREED_HANDOFF, /* take the hand-off slot if nothing else is there */
	WF_GREED_ALL,     /* take a thread that gathers, too, but only one */
};

/*
 * Move up to half of from into to, at most 32. warm_at, unless NULL: leave those that ran there last, because what
 * they work on is in its caches.
 */
uint32_t wf_runq_steal(struct wf_runq *to, struct wf_runq *from, enum wf_greed greed,
		       const struct wf_worker *warm_at);

WF_INLINE uint32_t wf_runq_nr(const struct wf_runq *q)
{
	return wf_load_relaxed(&q->nr);
}

/* After so many the queue gets a turn: two threads that wake each other must not own a worker. */
#define WF_HANDOFFS_IN_A_ROW 16

/*
 * Both halves of a ping-pong between two threads of the only worker, short enough to be inlined. False and
 * NULL: the functions above must do it.
 */
WF_INLINE bool wf_runq_put_handoff(struct wf_runq *q, struct wf_thread *t)
{
	if (!q->is_private || q->handoff)
		return false;
	q->handoff = t;
	wf_store_relaxed(&q->nr, q->nr + 1);
	return true;
}

WF_INLINE struct wf_thread *wf_runq_take_handoff(struct wf_runq *q)
{
	struct wf_thread *t = q->handoff;

	if (!q->is_private || !t || q->handoff_streak >= WF_HANDOFFS_IN_A_ROW)
		return NULL;
	q->handoff = NULL;
	q->handoff_streak++;
	t->round = (uint16_t)q->round;
	wf_store_relaxed(&q->nr, q->nr - 1);
	return t;
}

#endif
