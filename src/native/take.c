// SPDX-License-Identifier: Apache-2.0
/* Tasks from the middle and from the far end of a deque; see take.h. */
#include "native/take.h"

WF_FACE_CODE void wf_take_back(struct wf_deque *d, weft_task *t)
{
	wf_task_of(t)->place = wf_deque_bottom(d);
	(void)wf_deque_push(d, t);
}

/* t is neither the youngest nor the oldest: those that are younger step aside. False: it was stolen meanwhile. */
WF_FACE_CODE static bool take_from_middle(struct wf_deque *d, weft_task *t)
{
	weft_task *aside = NULL, *x;

	while ((x = wf_deque_pop(d)) && x != t) {
		wf_task_of(x)->next = aside;
		aside = x;
	}
	while (aside) {
		weft_task *next = wf_task_of(aside)->next;

		wf_take_back(d, aside);
		aside = next;
	}
	return x == t;
}

WF_FACE_CODE bool wf_take_task(struct wf_deque *d, weft_task *t)
{
	for (;;) {
		const int64_t top = wf_load_acquire(&d->top), place = wf_task_of(t)->place;

		if (place < top)
			return false;
		if (place > top)
			return take_from_middle(d, t);
		/* Tasks that are joined in the order in which they were forked. */
		if (wf_deque_take_at(d, place))
			return true;
	}
}
