// SPDX-License-Identifier: Apache-2.0
/*
 * The deque of one thread's tasks, and the word by which the joiner of a task and its thief agree who calls it.
 *
 * Called by: task.c, in the program's code. No libc, so that tests/model can play it.
 *
 * Invariant (Chase and Lev's): the tasks are those in [top, bottom). The owner alone moves bottom, and writes slots. top only
 * grows, by compare and swap; whoever moves it from i has task i, and nobody else. The owner takes the one at bottom - 1
 * without that while it is not the last: it lowers bottom, fences, then reads top; a thief reads top, fences, then reads
 * bottom. One of the two sees the other: either the thief finds the task gone, or the owner finds top there, and then it is the
 * last one, for which the owner, too, has to move top.
 *
 * A ring that became too small is kept: a thief may still read a slot of it, which then holds what the new one does.
 */
#ifndef WF_NATIVE_DEQUE_H
#define WF_NATIVE_DEQUE_H

#include "base/atomic.h"
#include "base/base.h"

struct weft_task;

struct wf_ring {
	int64_t mask;
	struct wf_ring *older; /* (o) */
	struct weft_task *slots[];
};

/* (a) atomic, anyone   (o) the owner */
struct wf_deque {
	int64_t top WF_ALIGNED(WF_CACHE_LINE);    /* (a) */
	int64_t bottom WF_ALIGNED(WF_CACHE_LINE); /* (a) written by the owner */
	struct wf_ring *ring;                     /* (a) written by the owner */
	/* (o) at most top: a look at the real one takes its line away from thieves */
	int64_t known_top;
};

WF_INLINE int64_t wf_deque_bottom(const struct wf_deque *d)
{
	return wf_load_relaxed(&d->bottom);
}

/* False: there is no room, see wf_deque_grow(). */
WF_INLINE bool wf_deque_push(struct wf_deque *d, struct weft_task *t)
{
	const int64_t b = d->bottom;
	struct wf_ring *r = d->ring;

	if (WF_UNLIKELY(b - d->known_top > r->mask)) {
		d->known_top = wf_load_acquire(&d->top);
		if (b - d->known_top > r->mask)
			return false;
	}
	wf_store_relaxed(&r->slots[b & r->mask], t);
	wf_store_release(&d->bottom, b + 1); /* pairs with the load in wf_deque_steal() */
	return true;
}

/* The youngest, or NULL. By the owner. */
WF_INLINE struct weft_task *wf_deque_pop(struct wf_deque *d)
{
	const int64_t b = d->bottom - 1;
	struct weft_task *t = NULL;
	int64_t top;

	wf_store_relaxed(&d->bottom, b);
	/* That store before the load of top; pairs with wf_deque_steal(). */
	wf_fence_seq_cst(&d->bottom);
	top = wf_load_relaxed(&d->top);
	if (WF_LIKELY(top < b))
		return wf_load_relaxed(&d->ring->slots[b & d->ring->mask]);
	if (top == b) {
		t = wf_load_relaxed(&d->ring->slots[b & d->ring->mask]);
		if (!wf_cas(&d->top, &top, b + 1))
			t = NULL;
	}
	wf_store_relaxed(&d->bottom, b + 1);
	return t;
}

enum wf_deque_haul {
	WF_DEQUE_EMPTY,
	WF_DEQUE_LOST, /* somebody else was faster: there may be more */
	WF_DEQUE_SOME,
};

/* The oldest. By anyone. */
enum wf_deque_haul wf_deque_steal(struct wf_deque *d, struct weft_task **out);

/*
 * The task at that place, which lies below bottom, if it is the oldest still. By the owner: for what lies there, and not for
 * whatever is the oldest by then, as a thief.
 */
WF_INLINE bool wf_deque_take_at(struct wf_deque *d, int64_t place)
{
	return wf_cas(&d->top, &place, place + 1);
}

/* A hint, unless the owner has been made to fence. */
WF_INLINE bool wf_deque_has_any(const struct wf_deque *d)
{
	int64_t top = wf_load_acquire(&d->top);

	return top < wf_load_acquire(&d->bottom);
}

/*
 * The thread that forks pushes, then reads calls; one of the crew that is about to sleep stores calls, has all processors pass a
 * barrier, then looks at the deques. One of the two sees the other, and the push needs no fence. True: it may sleep.
 */
WF_INLINE bool wf_deque_may_sleep(uint32_t *calls, void (*barrier)(void), bool (*is_any)(void))
{
	wf_store_seq_cst(calls, 1u);
	barrier();
	return !is_any();
}

/* From now on the tasks are in ring, which is larger than the present one. By the owner. */
void wf_deque_grow(struct wf_deque *d, struct wf_ring *ring);

/*
 * The word of a task that is not in its owner's deque any more: it was stolen. The thief and the joiner each change it
 * once; the second one knows then what the first one was.
 */
#define WF_JOIN_FORKED 1ull
#define WF_JOIN_DONE 2ull
#define WF_JOIN_JOINED 3ull /* by its owner: it is called, or over */

struct wf_joiner {
	uint32_t is_done; /* (a) */
};

/* The task's function has returned. NULL, or who is to be woken, by is_done. The task belongs to its joiner from here on. */
WF_INLINE struct wf_joiner *wf_join_finish(uint64_t *word)
{
	uint64_t was = wf_exchange(word, WF_JOIN_DONE);

	return was == WF_JOIN_FORKED ? NULL : (struct wf_joiner *)(uintptr_t)was;
}

/* False: it is done. Otherwise is_done will be set. */
WF_INLINE bool wf_join_begin(uint64_t *word, struct wf_joiner *j)
{
	uint64_t was = WF_JOIN_FORKED;

	return wf_cas(word, &was, (uint64_t)(uintptr_t)j);
}

#endif
