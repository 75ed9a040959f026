// SPDX-License-Identifier: Apache-2.0
/*
 * Channels; see chan.h. An item that goes from a sender to a receiver that waits, or the other way round, is moved behind the lock:
 * the one that waits was claimed, so its item is nobody else's, and the channel may be gone by then.
 */
#include "sync/chan.h"
#include "sched/self.h"

#include <errno.h>

static void copy(void *to, const void *from, size_t bytes)
{
	if (bytes == sizeof(uint64_t)) /* a pointer, most often */
		__builtin_memcpy(to, from, sizeof(uint64_t));
	else if (bytes)
		__builtin_memcpy(to, from, bytes);
}

size_t wf_chan_bytes(size_t item_bytes, size_t capacity)
{
	size_t room, bytes;

	if (__builtin_mul_overflow(item_bytes, capacity, &room) ||
	    __builtin_add_overflow(room, sizeof(struct wf_chan), &bytes))
		return 0;
	return bytes;
}

void wf_chan_init(struct wf_chan *ch, size_t item_bytes, size_t capacity, const char *name)
{
	*ch = (struct wf_chan){
		.ready = capacity ? WF_CHAN_SEND : 0,
		.name = name,
		.item_bytes = item_bytes,
		.capacity = capacity,
	};
	wf_list_init(&ch->receivers);
	wf_list_init(&ch->senders);
}

void wf_chan_unlock(struct wf_chan *ch)
{
	uint32_t ready = 0;

	if (ch->is_closed || ch->count < ch->capacity || !wf_list_is_empty(&ch->receivers))
		ready |= WF_CHAN_SEND;
	if (ch->is_closed || ch->count || !wf_list_is_empty(&ch->senders))
		ready |= WF_CHAN_RECV;
	wf_store_hint(&ch->ready, ready);
	wf_spin_unlock(&ch->lock);
}

uint32_t wf_chan_waiters(struct wf_chan *ch)
{
	const struct wf_list *p;
	uint32_t nr = 0;

	wf_chan_lock(ch);
	for (p = ch->receivers.next; p != &ch->receivers; p = p->next)
		nr++;
	for (p = ch->senders.next; p != &ch->senders; p = p->next)
		nr++;
	wf_chan_unlock(ch);
	return nr;
}

/* The channel may be gone before a select that names it twice could take its other nodes away. */
static WF_NOINLINE void drop_siblings(struct wf_wait_node *n)
{
	for (struct wf_wait_node *s = n->sibling; s != n; s = s->sibling)
		wf_list_remove(&s->link);
}

/* The first that still waits, now claimed; or NULL. */
static struct wf_wait_node *claim_first(struct wf_list *waiters)
{
	struct wf_list *link;

	while ((link = wf_list_pop_head(waiters))) {
		struct wf_wait_node *n = container_of(link, struct wf_wait_node, link);

		if (WF_UNLIKELY(!wf_wait_claim(n)))
			continue;
		if (WF_UNLIKELY(n->sibling))
			drop_siblings(n);
		return n;
	}
	return NULL;
}

static void *slot(struct wf_chan *ch, size_t i)
{
	return ch->items + (i < ch->capacity ? i : i - ch->capacity) * ch->item_bytes;
}

static void put(struct wf_chan *ch, const void *item)
{
	copy(slot(ch, ch->first + ch->count), item, ch->item_bytes);
	wf_store_relaxed(&ch->count, ch->count + 1);
}

static void get(struct wf_chan *ch, void *out)
{
	copy(out, slot(ch, ch->first), ch->item_bytes);
	ch->first = ch->first + 1 < ch->capacity ? ch->first + 1 : 0;
	wf_store_relaxed(&ch->count, ch->count - 1);
}

int wf_chan_try_send(struct wf_chan *ch, const void *item, struct wf_wait_node **out_peer)
{
	*out_peer = NULL;
	if (WF_UNLIKELY(ch->is_closed))
		return -EPIPE;
	*out_peer = claim_first(&ch->receivers);
	if (*out_peer)
		return 0;
	if (ch->count == ch->capacity)
		return -EAGAIN;
	put(ch, item);
	return 0;
}

int wf_chan_try_recv(struct wf_chan *ch, void *out, struct wf_wait_node **out_peer)
{
	*out_peer = NULL;
	if (ch->count) {
		get(ch, out);
		*out_peer = claim_first(&ch->senders);
		if (*out_peer) {
			put(ch, (*out_peer)->item);
			(*out_peer)->item = NULL; /* it has been moved */
		}
		return 0;
	}
	*out_peer = claim_first(&ch->senders);
	if (*out_peer)
		return 0;
	return ch->is_closed ? -EPIPE : -EAGAIN;
}

void wf_chan_finish_send(struct wf_thread *self, size_t bytes, const void *item,
			 struct wf_wait_node *peer)
{
	if (!peer)
		return;
	copy(peer->item, item, bytes);
	wf_wait_serve(self, peer, 0);
}

void wf_chan_finish_recv(struct wf_thread *self, size_t bytes, void *out, struct wf_wait_node *peer)
{
	if (!peer)
		return;
	if (peer->item)
		copy(out, peer->item, bytes);
	wf_wait_serve(self, peer, 0);
}

/* Both directions below are one, told apart by a constant. */
WF_INLINE int try(struct wf_chan *ch, uint32_t what, void *item, struct wf_wait_node **out_peer)
{
	return what == WF_CHAN_SEND ? wf_chan_try_send(ch, item, out_peer)
				    : wf_chan_try_recv(ch, item, out_peer);
}

WF_INLINE void finish(struct wf_thread *self, uint32_t what, size_t bytes, void *item,
		      struct wf_wait_node *peer)
{
	if (what == WF_CHAN_SEND)
		wf_chan_finish_send(self, bytes, item, peer);
	else
		wf_chan_finish_recv(self, bytes, item, peer);
}

WF_INLINE int try_once(struct wf_thread *self, struct wf_chan *ch, uint32_t what, void *item)
{
	struct wf_wait_node *peer;
	size_t bytes;
	int ret;

	wf_chan_lock(ch);
	bytes = ch->item_bytes;
	ret = try(ch, what, item, &peer);
	wf_chan_unlock(ch);
	finish(self, what, bytes, item, peer);
	return ret;
}

/* As try_once(), but who would have to wait is on the list afterwards. In state PARKING. */
WF_INLINE int try_or_enqueue(struct wf_thread *self, struct wf_chan *ch, uint32_t what, void *item,
			     struct wf_wait_node *n)
{
	struct wf_wait_node *peer;
	size_t bytes;
	int ret;

	wf_chan_lock(ch);
	bytes = ch->item_bytes;
	ret = try(ch, what, item, &peer);
	if (ret == -EAGAIN)
		wf_list_push_tail(what == WF_CHAN_SEND ? &ch->senders : &ch->receivers, &n->link);
	wf_chan_unlock(ch);
	if (WF_LIKELY(ret == -EAGAIN))
		return ret;
	wf_wait_abort(self);
	finish(self, what, bytes, item, peer);
	return ret;
}

static WF_NOINLINE void withdraw(struct wf_chan *ch, struct wf_wait_node *n)
{
	wf_chan_lock(ch);
	wf_list_remove(&n->link);
	wf_chan_unlock(ch);
}

WF_INLINE int transfer(struct wf_thread *self, struct wf_chan *ch, uint32_t what, void *item,
		       int64_t until)
{
	struct wf_wait_node node;
	struct wf_waiter waiter;
	int ret;

	if (wf_chan_is_ready(ch, what)) {
		ret = try_once(self, ch, what, item);
		if (ret != -EAGAIN)
			return ret;
	}
	if (wf_wait_is_late(self, until)) {
		ret = try_once(self, ch, what, item); /* that was a hint */
		return ret == -EAGAIN ? -ETIMEDOUT : ret;
	}
	wf_waiter_init(&waiter, self);
	wf_wait_node_init(&node, &waiter, 0, item);
	wf_wait_begin(self, what == WF_CHAN_SEND ? WF_WAIT_SEND : WF_WAIT_RECV, (uintptr_t)ch);
	ret = try_or_enqueue(self, ch, what, item, &node);
	if (ret != -EAGAIN)
		return ret;
	ret = wf_wait_park(self, &waiter, until);
	if (ret == 0)
		return node.result;
	withdraw(ch, &node);
	wf_wait_done(&waiter);
	return ret;
}

int wf_chan_send(struct wf_thread *self, struct wf_chan *ch, const void *item, int64_t until)
{
	int ret;

	wf_self_enter(self);
	ret = transfer(self, ch, WF_CHAN_SEND, (void *)item, until);
	wf_self_leave(self);
	return ret;
}

int wf_chan_recv(struct wf_thread *self, struct wf_chan *ch, void *out, int64_t until)
{
	int ret;

	wf_self_enter(self);
	ret = transfer(self, ch, WF_CHAN_RECV, out, until);
	wf_self_leave(self);
	return ret;
}

static struct wf_wait_node **claim_all(struct wf_list *waiters, struct wf_wait_node **last)
{
	struct wf_wait_node *n;

	while ((n = claim_first(waiters))) {
		*last = n;
		last = &n->next;
	}
	*last = NULL;
	return last;
}

void wf_chan_close(struct wf_thread *self, struct wf_chan *ch)
{
	struct wf_wait_node *claimed = NULL;

	wf_self_enter(self);
	wf_chan_lock(ch);
	wf_store_relaxed(&ch->is_closed, true);
	(void)claim_all(&ch->senders, claim_all(&ch->receivers, &claimed));
	wf_chan_unlock(ch);
	wf_wait_serve_all(self, claimed, -EPIPE);
	wf_self_leave(self);
}
