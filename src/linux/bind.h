// SPDX-License-Identifier: Apache-2.0
/*
 * For what a thread is bound to a kernel thread.
 */
#ifndef WF_LINUX_BIND_H
#define WF_LINUX_BIND_H

#include "linux/abi.h"
#include "sched/bind.h"

/* Reasons; with none left the thread runs on any kernel thread again. */
#define LX_BIND_POLICY 1u
#define LX_BIND_AFFINITY 2u
#define LX_BIND_NICE 4u
#define LX_BIND_STATE 8u  /* something that cannot be undone */
#define LX_BIND_URING 16u /* a ring of io_uring belongs to it; not inherited */
#define LX_BIND_FAULT 32u /* it waits in a page fault */
#define LX_BIND_ASKED 64u /* it has asked for it; not inherited */

/* 0: the caller is bound. -EAGAIN: no kernel thread would be left for the others, and none can be made. */
WF_PARKS long lx_bind_for(uint32_t reason);
WF_PARKS void lx_bind_no_longer_for(uint32_t reason);
/* The same for another thread: at once when it is running, else before it runs again. */
void lx_bind_other(struct lx_thread *t, uint32_t reason);
void lx_bind_other_no_longer(struct lx_thread *t, uint32_t reason);
/* The caller's WF_ATT_BIND was set: bind it, or end that. may_end: false where nothing may park. */
WF_PARKS void lx_bind_rethink(struct lx_thread *self, bool may_end);
/*
 * Page faults that threads of the program serve: a thread that waits in one, be it in a call of ours, must not keep a
 * worker from the one that it waits for. So from the first userfaultfd on all threads are bound.
 */
void lx_bind_all_for_faults(void);
/* Hook of the kick, where that was not seen: the caller is bound until it makes a call. */
void lx_bind_in_fault(struct wf_thread *base);

/* The caller may differ from the process by something that cannot be undone. */
WF_INLINE bool lx_has_own_state(void)
{
	return wf_load_acquire(&lx_self()->binds) & LX_BIND_STATE;
}

#endif
