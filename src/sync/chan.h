// SPDX-License-Identifier: Apache-2.0
/*
 * Channels: a ring of items, and who waits to send or to receive. See include/weft/chan.h.
 *
 * Called by: native/chan.c; the functions below the line by select.c.
 *
 * Invariant, under the lock: receivers wait only while nothing is in it and it is open, senders only while it is full and
 * open. Nodes whose waiter has given up, or was claimed elsewhere, may be among them: whoever finds one drops it.
 */
#ifndef WF_SYNC_CHAN_H
#define WF_SYNC_CHAN_H

#include "base/spin.h"
#include "sync/wait.h"

/* Hints of what would not wait. */
#define WF_CHAN_SEND 1u
#define WF_CHAN_RECV 2u

struct wf_chan {
	struct wf_spin lock;
	uint32_t ready;                    /* (a) a hint, written under the lock: WF_CHAN_* */
	const char *name;                  /* (c) or NULL */
	size_t item_bytes;                 /* (c) */
	size_t capacity;                   /* (c) in items */
	size_t count;                      /* (a) written under the lock */
	size_t first;                      /* (q) the oldest of them */
	bool is_closed;                    /* (a) written under the lock */
	struct wf_list receivers, senders; /* (q) */
	unsigned char items[] WF_ALIGNED(16);
};

/* In storage of wf_chan_bytes(). 0: so much memory there is not. */
size_t wf_chan_bytes(size_t item_bytes, size_t capacity);
void wf_chan_init(struct wf_chan *ch, size_t item_bytes, size_t capacity, const char *name);
/* Before its storage is freed: how many threads wait for it; that is none, or a mistake. */
uint32_t wf_chan_waiters(struct wf_chan *ch);

/* self: as in native/face.h. These go in and out as sched/self.h has it. */
void wf_chan_close(struct wf_thread *self, struct wf_chan *ch);
/* 0; -EPIPE; -ETIMEDOUT; -EINTR: see wf_wait_park(). */
WF_PARKS int wf_chan_send(struct wf_thread *self, struct wf_chan *ch, const void *item,
			  int64_t until);
WF_PARKS int wf_chan_recv(struct wf_thread *self, struct wf_chan *ch, void *out, int64_t until);

WF_INLINE size_t wf_chan_count(const struct wf_chan *ch)
{
	return wf_load_relaxed(&ch->count);
}

WF_INLINE bool wf_chan_is_ready(const struct wf_chan *ch, uint32_t what)
{
	return wf_load_hint(&ch->ready) & what;
}

/* --- for waits on several --- */

WF_INLINE void wf_chan_lock(struct wf_chan *ch)
{
	wf_spin_lock(&ch->lock);
}

/* It hints at what changed under it. */
void wf_chan_unlock(struct wf_chan *ch);

/*
 * Under the lock: 0, -EPIPE, or -EAGAIN: it would have to wait. *out_peer: NULL, or who was claimed for it, to be passed to
 * wf_chan_finish() under no lock.
 */
int wf_chan_try_send(struct wf_chan *ch, const void *item, struct wf_wait_node **out_peer);
int wf_chan_try_recv(struct wf_chan *ch, void *out, struct wf_wait_node **out_peer);
/* Moves the item between the two, if it is not yet, and wakes the peer. */
void wf_chan_finish_send(struct wf_thread *self, size_t bytes, const void *item,
			 struct wf_wait_node *peer);
void wf_chan_finish_recv(struct wf_thread *self, size_t bytes, void *out,
			 struct wf_wait_node *peer);

#endif
