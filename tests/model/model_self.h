// SPDX-License-Identifier: Apache-2.0
/* sched/self.h for the model checker: the program has no use for the base register, and nobody goes in or out. */
#ifndef WF_SCHED_SELF_H
#define WF_SCHED_SELF_H

#include "sched/worker.h"

WF_INLINE void wf_self_enter(const struct wf_thread *self)
{
}

WF_INLINE void wf_self_leave(const struct wf_thread *self)
{
}

#endif
