// SPDX-License-Identifier: Apache-2.0
/*
 * Select: one wait at several channels and events. See include/weft/select.h.
 *
 * Called by: native/select.c, which knows of descriptors: here they are operations that are never ready, but for the first of
 * them that is, as it says.
 *
 * Invariant: what is ready is decided with the locks of all objects held, in the order of their addresses; so nobody finds a
 * select at one of its objects while it does something at another, and two selects that could serve each other do. With one
 * lock alone an operation is done if none before it is ready behind that lock: whatever was so earlier would be seen.
 */
#ifndef WF_SYNC_SELECT_H
#define WF_SYNC_SELECT_H

#include "sync/wait.h"
#include "weft/select.h"

struct wf_select {
	struct weft_op *ops;
	uint32_t nr;
	uint32_t ready_fd;          /* nr: none */
	struct wf_wait_node *nodes; /* nr of them */
	uint32_t *order;            /* so many as well */
	struct wf_waiter waiter;
};

/* Without waiting. The index of the one that is done, or -EAGAIN. In and out as sched/self.h has it. */
int wf_select_try(struct wf_thread *self, struct wf_select *s);
/* The whole, if there are no descriptors. An index; -ETIMEDOUT; -EINTR: see wf_wait_park(). */
WF_PARKS int wf_select_wait(struct wf_thread *self, struct wf_select *s, int64_t until);

/*
 * In parts, within the runtime. An index: that one is done; -EAGAIN: all objects know s->waiter, and what the wait for it
 * returned is to be passed to wf_select_end(), which returns an index or that.
 */
int wf_select_begin(struct wf_thread *self, struct wf_select *s);
int wf_select_end(struct wf_thread *self, struct wf_select *s, int waited);

#endif
