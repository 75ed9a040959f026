// SPDX-License-Identifier: Apache-2.0
/*
 * A stack of threads with one atomic head. Push by CAS; taking exchanges the whole stack for NULL, so
 * there is no ABA and any number of takers may try. Invariant: a pushed thread is returned by exactly one take.
 */
#include "sched/inbox.h"
#include "sched/kthread.h"
#include "sched/shuffle.h"

void wf_inbox_push(struct wf_worker *w, struct wf_thread *t)
{
	struct wf_thread *head = wf_load_relaxed(&w->inbox);

	wf_store_hint(&w->inbox_gathers, t->gathers);
	do {
		t->next = head;
		wf_step();
	}
	/* publishes t->next; pairs with the exchange in take */
	while (!wf_cas(&w->inbox, &head, t));
}

struct wf_thread *wf_inbox_take(struct wf_worker *w)
{
	struct wf_thread *t, *oldest = NULL;

	if (!wf_load_relaxed(&w->inbox))
		return NULL;
	t = wf_exchange(&w->inbox, (struct wf_thread *)NULL);
	while (t) {
		struct wf_thread *next = t->next;

		t->next = oldest;
		oldest = t;
		t = next;
	}
	return oldest;
}
