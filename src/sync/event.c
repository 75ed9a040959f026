// SPDX-License-Identifier: Apache-2.0
/*
 * Events; see event.h. All waiters are claimed under the lock and woken behind it: no lock is held longer than it takes to
 * walk the list, and who is woken first may free the event.
 */
#include "sync/event.h"
#include "sched/self.h"

#include <errno.h>

void wf_event_lock(struct wf_sync_event *e)
{
	uint32_t word = wf_load_relaxed(&e->word);

	for (uint32_t round = 0;;) {
		if (word & WF_EVENT_LOCKED) {
			sys_relax(round++);
			word = wf_load_relaxed(&e->word);
		} else if (wf_cas(&e->word, &word, word | WF_EVENT_LOCKED)) {
			wf_lock_taken();
			return;
		}
	}
}

static void unlock_as(struct wf_sync_event *e, uint32_t word)
{
	wf_store_release(&e->word, word); /* pairs with the compare-and-swap of the next one */
}

void wf_event_unlock(struct wf_sync_event *e)
{
	unlock_as(e,
		  (wf_load_relaxed(&e->word) & WF_EVENT_SET) | (e->first ? WF_EVENT_WAITERS : 0));
}

void wf_event_enqueue(struct wf_sync_event *e, struct wf_wait_node *n)
{
	if (e->first)
		wf_list_insert_before(&e->first->link, &n->link);
	else
		e->first = n;
}

void wf_event_dequeue(struct wf_sync_event *e, struct wf_wait_node *n)
{
	struct wf_wait_node *next = container_of(n->link.next, struct wf_wait_node, link);

	if (next == n) { /* alone, or on no list */
		if (e->first == n)
			e->first = NULL;
		return;
	}
	if (e->first == n)
		e->first = next;
	wf_list_remove(&n->link);
}

/* Under the lock: the waiters leave the list, and those that had not given up are returned, oldest first. */
static struct wf_wait_node *claim_all(struct wf_sync_event *e)
{
	struct wf_wait_node *n, *first = NULL, **last = &first;

	while ((n = e->first)) {
		wf_event_dequeue(e, n);
		n->next = NULL;
		if (wf_wait_claim(n)) {
			*last = n;
			last = &n->next;
		}
	}
	return first;
}

static WF_NOINLINE void set_under_lock(struct wf_thread *self, struct wf_sync_event *e)
{
	uint64_t mask = wf_wait_block(self);
	struct wf_wait_node *claimed;

	wf_event_lock(e);
	claimed = claim_all(e);
	unlock_as(e, WF_EVENT_SET);
	wf_wait_serve_all(self, claimed, 0);
	wf_wait_unblock(self, mask);
}

void wf_event_set(struct wf_thread *self, struct wf_sync_event *e)
{
	uint32_t word = wf_load_relaxed(&e->word);

	/* Also where it is set: who finds it so sees what we did before. */
	while (!(word & (WF_EVENT_LOCKED | WF_EVENT_WAITERS)))
		if (wf_cas(&e->word, &word, WF_EVENT_SET))
			return;
	wf_self_enter(self);
	set_under_lock(self, e);
	wf_self_leave(self);
}

void wf_event_clear(struct wf_sync_event *e)
{
	uint32_t word = wf_load_relaxed(&e->word);

	for (uint32_t round = 0;;) {
		if (word & WF_EVENT_LOCKED) {
			sys_relax(round++);
			word = wf_load_relaxed(&e->word);
		} else if (wf_cas(&e->word, &word, word & ~WF_EVENT_SET)) {
			return;
		}
	}
}

/* A setter that has not left it yet is waited for: the caller may free it. */
static bool look(struct wf_thread *self, struct wf_sync_event *e)
{
	uint32_t word = wf_load_acquire(&e->word);
	uint64_t mask;
	bool is_set;

	if (WF_LIKELY(!(word & WF_EVENT_LOCKED)))
		return word & WF_EVENT_SET;
	mask = wf_wait_block(self);
	wf_event_lock(e);
	is_set = wf_event_is_set(e);
	wf_event_unlock(e);
	wf_wait_unblock(self, mask);
	return is_set;
}

/* Under no lock. True: it is set, and there is nothing to wait for. */
static bool enqueue_unless_set(struct wf_thread *self, struct wf_sync_event *e,
			       struct wf_wait_node *n)
{
	uint64_t mask = wf_wait_block(self);
	bool is_set;

	wf_event_lock(e);
	is_set = wf_event_is_set(e);
	if (!is_set)
		wf_event_enqueue(e, n);
	wf_event_unlock(e);
	wf_wait_unblock(self, mask);
	return is_set;
}

static WF_NOINLINE void withdraw(struct wf_thread *self, struct wf_sync_event *e,
				 struct wf_wait_node *n)
{
	uint64_t mask = wf_wait_block(self);

	wf_event_lock(e);
	wf_event_dequeue(e, n);
	wf_event_unlock(e);
	wf_wait_unblock(self, mask);
}

static int wait_until(struct wf_thread *self, struct wf_sync_event *e, int64_t until)
{
	struct wf_wait_node node;
	struct wf_waiter waiter;
	int ret;

	if (look(self, e))
		return 0;
	if (wf_wait_is_late(self, until))
		return -ETIMEDOUT;
	wf_waiter_init(&waiter, self);
	wf_wait_node_init(&node, &waiter, 0, NULL);
	wf_wait_begin(self, WF_WAIT_EVENT, (uintptr_t)e);
	if (enqueue_unless_set(self, e, &node)) {
		wf_wait_abort(self);
		return 0;
	}
	ret = wf_wait_park(self, &waiter, until);
	if (ret == 0)
		return 0;
	withdraw(self, e, &node);
	wf_wait_done(&waiter);
	return ret;
}

int wf_event_wait(struct wf_thread *self, struct wf_sync_event *e, int64_t until)
{
	int ret;

	wf_self_enter(self);
	ret = wait_until(self, e, until);
	wf_self_leave(self);
	return ret;
}
