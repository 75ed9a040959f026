// SPDX-License-Identifier: Apache-2.0
/* Real calls that may block, for the worker that makes them; see insys.c. */
#ifndef WF_SCHED_INSYS_H
#define WF_SCHED_INSYS_H

#include "base/base.h"

struct wf_thread;
struct wf_worker;

/* A call that may block in the kernel. certain: hand the worker on first. Pairs with wf_call_leave(). */
void wf_call_enter(bool certain);
/*
 * The same for a call of which it is not known whether it returns soon. While others are queued for the worker it is handed on
 * first: a wrong guess costs some 20 us, to find out by waiting costs them a slice.
 */
void wf_call_enter_unknown(void);
/*
 * The same for a call that is certain to block, but not for long, such as a read from a disk: the worker is free for
 * whoever comes back from such a call, and given to another kernel thread only if work waits for it. Until then the
 * door polls in its place.
 */
void wf_call_enter_lazy(void);
WF_PARKS void wf_call_leave(void);
/* Monitor: take the worker of a kernel thread that is stuck in a call. */
bool wf_call_retake(struct wf_worker *w);
/* Interrupt the real call that t is in, or about to make: it returns -EINTR, or the part it has done. */
void wf_call_break(struct wf_thread *t);

#endif
