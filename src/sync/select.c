// SPDX-License-Identifier: Apache-2.0
/* Select; see select.h. */
#include "sync/select.h"
#include "sched/self.h"
#include "sync/chan.h"
#include "sync/event.h"

#include <errno.h>

static bool is_channel(const struct weft_op *op)
{
	return op->kind == WEFT_OP_RECV || op->kind == WEFT_OP_SEND;
}

/* It stands on a list while the select waits. */
static bool has_object(const struct weft_op *op)
{
	return op->object && (is_channel(op) || op->kind == WEFT_OP_ON);
}

/* A handler may set what we would have locked. */
static bool has_event(const struct wf_select *s)
{
	for (uint32_t i = 0; i < s->nr; i++)
		if (s->ops[i].kind == WEFT_OP_ON && s->ops[i].object)
			return true;
	return false;
}

static uint64_t block(const struct wf_thread *self, const struct wf_select *s)
{
	return WF_UNLIKELY(!self) && has_event(s) ? wf_wait_block(self) : 0;
}

static void unblock(const struct wf_thread *self, const struct wf_select *s, uint64_t mask)
{
	if (WF_UNLIKELY(!self) && has_event(s))
		wf_wait_unblock(self, mask);
}

static void lock(const struct weft_op *op)
{
	if (op->kind == WEFT_OP_ON)
		wf_event_lock(op->object);
	else
		wf_chan_lock(op->object);
}

static void unlock(const struct weft_op *op)
{
	if (op->kind == WEFT_OP_ON)
		wf_event_unlock(op->object);
	else
		wf_chan_unlock(op->object);
}

/* The work that the one that is done leaves for behind the locks. */
struct done {
	struct wf_wait_node *peer;
	size_t bytes;
};

/* Under the lock of its object: 0, -EPIPE or -EAGAIN. */
static int attempt(struct weft_op *op, struct done *d)
{
	d->peer = NULL;
	switch (op->kind) {
	case WEFT_OP_RECV:
		d->bytes = ((struct wf_chan *)op->object)->item_bytes;
		return wf_chan_try_recv(op->object, op->item, &d->peer);
	case WEFT_OP_SEND:
		d->bytes = ((struct wf_chan *)op->object)->item_bytes;
		return wf_chan_try_send(op->object, op->item, &d->peer);
	default:
		return wf_event_is_set(op->object) ? 0 : -EAGAIN;
	}
}

static int finish(struct wf_thread *self, const struct wf_select *s, uint32_t i, int result,
		  const struct done *d)
{
	struct weft_op *op = &s->ops[i];

	op->result = result;
	if (op->kind == WEFT_OP_RECV)
		wf_chan_finish_recv(self, d->bytes, op->item, d->peer);
	else if (op->kind == WEFT_OP_SEND)
		wf_chan_finish_send(self, d->bytes, op->item, d->peer);
	return (int)i;
}

static bool may_be_ready(const struct weft_op *op)
{
	if (!has_object(op))
		return false;
	if (op->kind == WEFT_OP_ON)
		return wf_event_is_set(op->object);
	return wf_chan_is_ready(op->object, op->kind == WEFT_OP_SEND ? WF_CHAN_SEND : WF_CHAN_RECV);
}

/*
 * Those before i are looked at once more, under its lock: what was ready before i became so is seen, and comes first. -EBUSY: so
 * it may be.
 */
static int try_one(struct wf_thread *self, const struct wf_select *s, uint32_t i)
{
	struct weft_op *op = &s->ops[i];
	bool is_event = op->kind == WEFT_OP_ON;
	uint64_t mask = is_event ? wf_wait_block(self) : 0;
	struct done d = { NULL, 0 };
	int ret = 0;

	lock(op);
	for (uint32_t before = 0; before < i && !ret; before++)
		ret = may_be_ready(&s->ops[before]) ? -EBUSY : 0;
	if (!ret)
		ret = attempt(op, &d);
	unlock(op);
	if (is_event)
		wf_wait_unblock(self, mask);
	return ret == -EAGAIN || ret == -EBUSY ? ret : finish(self, s, i, ret, &d);
}

/* By hints. -EAGAIN: nothing seems to be ready, or it is not certain what comes first. */
static int try_fast(struct wf_thread *self, const struct wf_select *s)
{
	int ret = -EAGAIN;

	for (uint32_t i = 0; i < s->nr && ret == -EAGAIN; i++)
		if (may_be_ready(&s->ops[i]))
			ret = try_one(self, s, i);
	return ret == -EBUSY ? -EAGAIN : ret;
}

/* By address, so that two selects do not wait for each other's locks. Those without an object come first. */
static void sort(const struct wf_select *s)
{
	for (uint32_t i = 0; i < s->nr; i++)
		s->order[i] = i;
	for (uint32_t gap = s->nr / 2; gap; gap /= 2)
		for (uint32_t i = gap; i < s->nr; i++) {
			uint32_t moved = s->order[i], at = i;
			uintptr_t key = (uintptr_t)s->ops[moved].object;

			for (; at >= gap && (uintptr_t)s->ops[s->order[at - gap]].object > key;
			     at -= gap)
				s->order[at] = s->order[at - gap];
			s->order[at] = moved;
		}
}

/* Each object once, in order. */
static void for_each_object(const struct wf_select *s, void (*fn)(const struct weft_op *op))
{
	const void *last = NULL;

	for (uint32_t i = 0; i < s->nr; i++) {
		const struct weft_op *op = &s->ops[s->order[i]];

		if (has_object(op) && op->object != last)
			fn(op);
		if (has_object(op))
			last = op->object;
	}
}

static void enqueue(const struct weft_op *op, struct wf_wait_node *n)
{
	if (op->kind == WEFT_OP_ON)
		wf_event_enqueue(op->object, n);
	else if (op->kind == WEFT_OP_RECV)
		wf_list_push_tail(&((struct wf_chan *)op->object)->receivers, &n->link);
	else
		wf_list_push_tail(&((struct wf_chan *)op->object)->senders, &n->link);
}

/* A ring for each channel that stands in several operations: they are neighbours in the order. */
static void link_siblings(const struct wf_select *s)
{
	struct wf_wait_node *first = NULL, *last = NULL;

	for (uint32_t i = 0; i < s->nr; i++) {
		const struct weft_op *op = &s->ops[s->order[i]];
		struct wf_wait_node *n = &s->nodes[s->order[i]];

		if (!has_object(op) || !is_channel(op))
			continue;
		if (last && s->ops[last->index].object == op->object) {
			last->sibling = n;
			n->sibling = first;
		} else {
			first = n;
		}
		last = n;
	}
}

/* Under the locks of all objects: the index of the first below nr that is ready, or -EAGAIN. */
static int attempt_first(const struct wf_select *s, uint32_t nr, int *out_result, struct done *d)
{
	for (uint32_t i = 0; i < nr; i++) {
		if (!has_object(&s->ops[i]))
			continue;
		*out_result = attempt(&s->ops[i], d);
		if (*out_result != -EAGAIN)
			return (int)i;
	}
	return -EAGAIN;
}

int wf_select_begin(struct wf_thread *self, struct wf_select *s)
{
	uint64_t mask = block(self, s);
	int ret, result = 0;
	struct done d = { NULL, 0 };

	sort(s);
	for_each_object(s, lock);
	ret = attempt_first(s, s->nr, &result, &d);
	for (uint32_t i = 0; i < s->nr && ret == -EAGAIN; i++) {
		wf_wait_node_init(&s->nodes[i], &s->waiter, i, s->ops[i].item);
		if (has_object(&s->ops[i]))
			enqueue(&s->ops[i], &s->nodes[i]);
	}
	if (ret == -EAGAIN)
		link_siblings(s);
	for_each_object(s, unlock);
	if (ret >= 0)
		(void)finish(self, s, (uint32_t)ret, result, &d);
	unblock(self, s, mask);
	return ret;
}

/* An operation before the descriptor that is ready, or that one. */
static int try_all(struct wf_thread *self, const struct wf_select *s)
{
	uint64_t mask = block(self, s);
	int ret, result = 0;
	struct done d = { NULL, 0 };

	sort(s);
	for_each_object(s, lock);
	ret = attempt_first(s, s->ready_fd, &result, &d);
	for_each_object(s, unlock);
	if (ret >= 0)
		(void)finish(self, s, (uint32_t)ret, result, &d);
	unblock(self, s, mask);
	return ret < 0 && s->ready_fd < s->nr ? (int)s->ready_fd : ret;
}

/* A node that a waker has dropped is on no list; the lock is taken all the same, for the waker may be about to. */
static void withdraw(struct wf_select *s, uint32_t i)
{
	const struct weft_op *op = &s->ops[i];

	if (!has_object(op))
		return;
	lock(op);
	if (op->kind == WEFT_OP_ON)
		wf_event_dequeue(op->object, &s->nodes[i]);
	else
		wf_list_remove(&s->nodes[i].link);
	unlock(op);
}

int wf_select_end(struct wf_thread *self, struct wf_select *s, int waited)
{
	uint32_t served = waited ? s->nr : wf_wait_index(wf_load_acquire(&s->waiter.word));
	uint64_t mask = block(self, s);

	/* Not at the object that served us: it may be gone. */
	for (uint32_t i = 0; i < s->nr; i++)
		if (served == s->nr || s->ops[i].object != s->ops[served].object)
			withdraw(s, i);
	unblock(self, s, mask);
	if (served == s->nr) {
		wf_wait_done(&s->waiter);
		return waited;
	}
	s->ops[served].result = s->nodes[served].result;
	return (int)served;
}

int wf_select_try(struct wf_thread *self, struct wf_select *s)
{
	int ret;

	wf_self_enter(self);
	ret = try_all(self, s);
	wf_self_leave(self);
	return ret;
}

static int wait_for(struct wf_thread *self, struct wf_select *s, int64_t until)
{
	int ret = try_fast(self, s);

	if (ret == -EAGAIN && wf_wait_is_late(self, until)) {
		ret = try_all(self, s);
		return ret == -EAGAIN ? -ETIMEDOUT : ret;
	}
	if (ret != -EAGAIN)
		return ret;
	wf_waiter_init(&s->waiter, self);
	if (self) /* there may be no lock to be taken */
		wf_park_begin(WF_INTR | WF_REACHED, WF_WAIT_SELECT, s->nr);
	ret = wf_select_begin(self, s);
	if (ret != -EAGAIN) {
		wf_wait_abort(self);
		return ret;
	}
	return wf_select_end(self, s, wf_wait_park(self, &s->waiter, until));
}

int wf_select_wait(struct wf_thread *self, struct wf_select *s, int64_t until)
{
	int ret;

	wf_self_enter(self);
	ret = wait_for(self, s, until);
	wf_self_leave(self);
	return ret;
}
