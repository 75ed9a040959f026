// SPDX-License-Identifier: Apache-2.0
/*
 * Intrusive doubly linked list with a sentinel. The caller holds whatever lock protects the list.
 */
#ifndef WF_BASE_LIST_H
#define WF_BASE_LIST_H

#include "base/base.h"

struct wf_list {
	struct wf_list *next, *prev;
};

WF_INLINE void wf_list_init(struct wf_list *l)
{
	l->next = l->prev = l;
}

WF_INLINE bool wf_list_is_empty(const struct wf_list *l)
{
	return l->next == l;
}

WF_INLINE void wf_list_insert_before(struct wf_list *at, struct wf_list *n)
{
	n->next = at;
	n->prev = at->prev;
	at->prev->next = n;
	at->prev = n;
}

WF_INLINE void wf_list_push_tail(struct wf_list *l, struct wf_list *n)
{
	wf_list_insert_before(l, n);
}

WF_INLINE void wf_list_push_head(struct wf_list *l, struct wf_list *n)
{
	wf_list_insert_before(l->next, n);
}

/* Removes n and leaves it an empty list of its own, so that removing twice does no harm. */
WF_INLINE void wf_list_remove(struct wf_list *n)
{
	n->prev->next = n->next;
	n->next->prev = n->prev;
	wf_list_init(n);
}

WF_INLINE struct wf_list *wf_list_pop_head(struct wf_list *l)
{
	struct wf_list *n = l->next;

	if (n == l)
		return NULL;
	wf_list_remove(n);
	return n;
}

/* Moves everything on from to the tail of to. */
WF_INLINE void wf_list_splice_tail(struct wf_list *to, struct wf_list *from)
{
	if (wf_list_is_empty(from))
		return;
	from->next->prev = to->prev;
	to->prev->next = from->next;
	from->prev->next = to;
	to->prev = from->prev;
	wf_list_init(from);
}

#define wf_list_for_each_safe(n, tmp, l)                                                           \
	for ((n) = (l)->next, (tmp) = (n)->next; (n) != (l); (n) = (tmp), (tmp) = (n)->next)

#endif
