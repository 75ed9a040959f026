// SPDX-License-Identifier: Apache-2.0
/*
 * The run queue of one worker: a wheel of virtual time, a list of those just woken, and a hand-off slot.
 *
 * The virtual time of a thread advances while it runs, by its weight: who has run least runs next, as with the kernel's
 * fair scheduler, but to the slot of a wheel and not exactly. So all that run in short turns go round together, whatever
 * their number, and a thread that computes for a whole slice comes again when the others have had as much.
 * A thread that has waited longer than it has run is not owed the time: it comes at once, and goes on from there.
 *
 * Invariant: a thread is in at most one queue, and whoever takes it off owns it. All fields under the lock;
 * nr may be read without it as a hint. No thread is in a slot before now, and none of the far blocks is near.
 */
#ifndef WF_SCHED_RUNQ_H
#define WF_SCHED_RUNQ_H

#include "base/spin.h"
#include "sched/thread.h"

struct wf_level {
	struct wf_thread *head, *tail;
};

/* Virtual time is counted in 64 ns; a slot is about 16 us of it, a block 64 slots: about a millisecond. */
#define WF_VTIME_NS 64
#define WF_SLOT_SHIFT 8
#define WF_BLOCK_SLOTS 64u
#define WF_NEAR 4u /* blocks whose slots are kept apart, the present one included */
/* blocks ahead that are told apart; who should come later is looked at again then */
#define WF_FAR 128u

struct wf_runq {
	struct wf_spin lock;
	/* (c) there is only one worker: nobody but its carrier uses the queue, so no lock is taken */
	bool is_private;
	uint32_t nr;               /* (a) queued threads, the hand-off slot included */
	uint32_t nr_beside_peer;   /* (a) of these with their peers here; 0 where it is private */
	struct wf_thread *handoff; /* (q) woken last by the running thread: runs next */
	uint32_t handoff_streak;   /* (q) hand-offs in a row */
	/* (q), read by others as a hint: the slot that is served */
	uint64_t now;
	struct wf_level woken;      /* (q) those that were woken and have run no more than others */
	uint64_t near_map[WF_NEAR]; /* (q) */
	uint64_t far_map[WF_FAR / 64];                  /* (q) */
	struct wf_level near[WF_NEAR * WF_BLOCK_SLOTS]; /* (q) by slot */
	struct wf_level far[WF_FAR];                    /* (q) by block */
};

enum wf_place {
	WF_PLACE_HANDOFF, /* run next, within the waker's slice; what was there goes to WOKEN */
	WF_PLACE_WOKEN,   /* when its time comes; before the others of that time */
	WF_PLACE_TAIL,    /* when its time comes */
	WF_PLACE_YIELDED, /* behind all that come within a slice */
};

void wf_runq_push(struct wf_runq *q, struct wf_thread *t, enum wf_place place);
/* t ran for that long, in WF_VTIME_NS. It belongs to the caller. */
void wf_runq_charge(struct wf_thread *t, uint64_t ran);
/* t, whose time was that of from, or that has none (NULL), goes to q: it is as far ahead there as it was. */
void wf_runq_adopt(struct wf_runq *q, struct wf_thread *t, const struct wf_runq *from);
/* Somebody at that level or before it waits in the queue, at the head of some slot. A hint. */
bool wf_runq_has_up_to(struct wf_runq *q, unsigned level);
/* t runs, and is charged for it. True: nobody's turn comes before its next one, so it keeps the worker. */
bool wf_runq_keeps(struct wf_runq *q, struct wf_thread *t);
/* out_new_slice: false when the thread came from the hand-off slot and inherits the slice. */
struct wf_thread *wf_runq_pop(struct wf_runq *q, bool *out_new_slice);
/* The running thread did not give way in time: the thread that it woke last waits like all others. */
void wf_runq_end_handoff(struct wf_runq *q);

/* Threads that a thief may take besides ordinary ones. */
enum wf_greed {
	WF_GREED_NONE, /* leave the hand-off slot, and threads that gather at a lock with all behind them */
	WF_GREED_HANDOFF, /* take the hand-off slot if nothing else is there */
	WF_GREED_ALL,     /* take a thread that gathers, too, but only one */
};

/* Those of the threads that ran there last which a thief leaves. */
enum wf_leave {
	WF_LEAVE_NONE,
	WF_LEAVE_BESIDE_PEER, /* those whose peers are there */
	WF_LEAVE_WARM,        /* all, because what they work on is in the caches there */
};

/* Move up to half of from, the queue of home, into to: at most 32. */
uint32_t wf_runq_steal(struct wf_runq *to, struct wf_runq *from, enum wf_greed greed,
		       const struct wf_worker *home, enum wf_leave leave);

WF_INLINE uint32_t wf_runq_nr(const struct wf_runq *q)
{
	return wf_load_relaxed(&q->nr);
}

/* All that are queued would leave their peers behind. A hint, as the counts are read one after the other: wrong, it costs a nap. */
WF_INLINE bool wf_runq_is_beside_peers(const struct wf_runq *q)
{
	return wf_load_relaxed(&q->nr_beside_peer) >= wf_load_relaxed(&q->nr);
}

/* A slice in virtual time. */
WF_INLINE uint64_t wf_runq_slice(int64_t slice_ns)
{
	return (uint64_t)slice_ns / WF_VTIME_NS;
}

/* How far t's time is beyond the beginning of the slot that is served. The clocks go round: the difference counts. */
WF_INLINE int64_t wf_runq_ahead(const struct wf_runq *q, const struct wf_thread *t)
{
	return (int64_t)((t->vtime - (wf_load_relaxed(&q->now) << WF_SLOT_SHIFT))
			 << WF_VTIME_SPARE) >>
	       WF_VTIME_SPARE;
}

/* Only t is left, in the hand-off slot: its time is the queue's. */
WF_INLINE void wf_runq_follow(struct wf_runq *q, const struct wf_thread *t)
{
	int64_t ahead = wf_runq_ahead(q, t);

	if (ahead >= 1 << WF_SLOT_SHIFT)
		wf_store_relaxed(&q->now, q->now + ((uint64_t)ahead >> WF_SLOT_SHIFT));
}

/* After so many the queue gets a turn: two threads that wake each other must not own a worker. */
#define WF_HANDOFFS_IN_A_ROW 16

/*
 * Both halves of a ping-pong between two threads of the only worker, short enough to be inlined. False and
 * NULL: the functions above must do it.
 */
WF_INLINE bool wf_runq_put_handoff(struct wf_runq *q, struct wf_thread *t)
{
	if (!q->is_private || q->nr)
		return false;
	q->handoff = t;
	wf_store_relaxed(&q->nr, 1u);
	return true;
}

WF_INLINE struct wf_thread *wf_runq_take_handoff(struct wf_runq *q)
{
	struct wf_thread *t = q->handoff;

	if (!q->is_private || !t || q->handoff_streak >= WF_HANDOFFS_IN_A_ROW)
		return NULL;
	q->handoff = NULL;
	q->handoff_streak++;
	wf_store_relaxed(&q->nr, q->nr - 1);
	if (!q->nr)
		wf_runq_follow(q, t);
	return t;
}

#endif
