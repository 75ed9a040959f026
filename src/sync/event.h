// SPDX-License-Identifier: Apache-2.0
/*
 * Events: a flag, and who waits for it. See include/weft/event.h.
 *
 * Called by: native/event.c; the functions below the line by select.c.
 *
 * Invariant: while LOCKED only its holder changes the word; WAITERS says that the list is not empty, and a set event has no
 * list. The flag appears when the lock is given up, after which the setter does not touch the event.
 */
#ifndef WF_SYNC_EVENT_H
#define WF_SYNC_EVENT_H

#include "sync/wait.h"

/*
 * The word:
 *   0 -> SET                anybody      CAS, while nobody waits
 *   any -> any + LOCKED     anybody      CAS, unless it is locked
 *   LOCKED -> SET           the holder   store: the waiters were claimed
 *   LOCKED -> WAITERS or 0  the holder   store: a waiter came or went
 *   SET -> 0                anybody      CAS, unless it is locked
 */
#define WF_EVENT_SET 1u
#define WF_EVENT_LOCKED 2u
#define WF_EVENT_WAITERS 4u

struct wf_sync_event {
	uint32_t word; /* (a) */
	uint32_t spare;
	struct wf_wait_node *first; /* (q) of a ring, or NULL */
};

_Static_assert(sizeof(struct wf_sync_event) == 2 * sizeof(uint64_t), "struct weft_event");

/* self: as in native/face.h. These go in and out as sched/self.h has it. */
void wf_event_set(struct wf_thread *self, struct wf_sync_event *e);
void wf_event_clear(struct wf_sync_event *e);
/* 0; -ETIMEDOUT; -EINTR: see wf_wait_park(). */
WF_PARKS int wf_event_wait(struct wf_thread *self, struct wf_sync_event *e, int64_t until);

WF_INLINE bool wf_event_is_set(const struct wf_sync_event *e)
{
	return wf_load_acquire(&e->word) & WF_EVENT_SET;
}

/* --- for waits on several; signals are blocked as wf_wait_block() has it --- */

void wf_event_lock(struct wf_sync_event *e);
void wf_event_unlock(struct wf_sync_event *e);
/* Under the lock, of one that is clear. */
void wf_event_enqueue(struct wf_sync_event *e, struct wf_wait_node *n);
/* Under the lock; a node that a setter has taken away is left alone. */
void wf_event_dequeue(struct wf_sync_event *e, struct wf_wait_node *n);

#endif
