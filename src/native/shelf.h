// SPDX-License-Identifier: Apache-2.0
/*
 * Shelves: where shells of a class rest, and threads wait for one; see shell.h. All of it is done under the shelf's lock.
 *
 * Called by: shell.c. Invariant: a shell that rests is on one shelf, and has a link; the one that takes it from there has it for itself.
 */
#ifndef WF_NATIVE_SHELF_H
#define WF_NATIVE_SHELF_H

#include "native/shell.h"

/* (q) */
struct wf_shelf {
	struct wf_spin lock;
	uint32_t nr;                      /* that rest */
	struct wf_shell *resting;         /* the one that came last is the first */
	struct weft_thread *first, *last; /* the queue */
	bool is_called;
	/* Of that of all workers: none could be made for something that is queued since; a hint without the lock. */
	bool is_stuck;
	/* (a) A spawner looks for the one that is called, or makes it. Set under the lock, cleared by that spawner. */
	bool is_unsure;
	/*
	 * The shell that was called for one thread alone, and has not arrived; while there is none, the next thread is given away like
	 * that. Set under the lock while it is NULL, and cleared by that shell without it.
	 */
	struct wf_shell *given_to;
};

/* --- those that rest --- */

WF_INLINE void wf_shelf_push(struct wf_shelf *s, struct wf_shell *shell)
{
	shell->next = s->resting;
	if (shell->next)
		shell->next->link = &shell->next;
	shell->link = &s->resting;
	wf_store_hint(&s->resting, shell);
	s->nr++;
}

WF_INLINE void wf_shelf_remove(struct wf_shelf *s, struct wf_shell *shell)
{
	wf_store_hint(shell->link, shell->next);
	if (shell->next)
		shell->next->link = shell->link;
	shell->link = NULL;
	s->nr--;
}

WF_INLINE struct wf_shell *wf_shelf_pop(struct wf_shelf *s)
{
	struct wf_shell *shell = s->resting;

	if (shell)
		wf_shelf_remove(s, shell);
	return shell;
}

/* --- the queue --- */

WF_INLINE void wf_shelf_append(struct wf_shelf *s, struct weft_thread *first,
			       struct weft_thread *last)
{
	last->next = NULL;
	if (s->first)
		s->last->next = first;
	else
		wf_store_hint(&s->first, first);
	s->last = last;
}

WF_INLINE struct weft_thread *wf_shelf_remove_first(struct wf_shelf *s)
{
	struct weft_thread *t = s->first;

	if (t)
		wf_store_hint(&s->first, t->next);
	if (WF_UNLIKELY(s->is_stuck) && !s->first)
		wf_store_hint(&s->is_stuck, false);
	return t;
}

/* False: a shell has it. */
WF_INLINE bool wf_shelf_withdraw(struct wf_shelf *s, struct weft_thread *t)
{
	struct weft_thread *before = NULL, *at = s->first;

	while (at && at != t) {
		before = at;
		at = at->next;
	}
	if (!at)
		return false;
	if (before)
		before->next = t->next;
	else
		wf_store_hint(&s->first, t->next);
	if (s->last == t)
		s->last = before;
	if (WF_UNLIKELY(s->is_stuck) && !s->first)
		wf_store_hint(&s->is_stuck, false);
	return true;
}

#endif
