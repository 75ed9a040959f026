// SPDX-License-Identifier: Apache-2.0
/*
 * For what a thread is bound to a kernel thread, and the calls that bind.
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

/* What the kernel calls t: its own kernel thread, or 0 when it has none. */
WF_INLINE int lx_bind_tid(const struct lx_thread *t)
{
	const struct wf_kthread *k = wf_load_acquire(&t->base.bound);

	return k ? wf_load_acquire(&k->tid) : 0;
}

/* The handler that answers call nr for a bound thread; `usual` is that of all others. */
long (*lx_bind_handler(long nr, long (*usual)(struct wf_frame *)))(struct wf_frame *);
/* A call whose effect stays with the kernel thread. */
WF_PARKS long lx_bind_call(struct wf_frame *f);
/* The same for what everybody can make alike: by a caller that is alone it is for all kernel threads. */
WF_PARKS long lx_bind_call_unless_alone(struct wf_frame *f);

/* The caller may differ from the process by something that cannot be undone. */
WF_INLINE bool lx_has_own_state(void)
{
	return wf_load_acquire(&lx_self()->binds) & LX_BIND_STATE;
}

WF_PARKS long sysc_binds(struct wf_frame *f);
WF_PARKS long sysc_keys(struct wf_frame *f);
WF_PARKS long sysc_personality(struct wf_frame *f);
WF_PARKS long sysc_userfaultfd(struct wf_frame *f);
WF_PARKS long sysc_arch_prctl(struct wf_frame *f);

#endif
