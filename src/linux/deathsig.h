// SPDX-License-Identifier: Apache-2.0
/* The signal that tells the process of its parent's end. */
#ifndef WF_LINUX_DEATHSIG_H
#define WF_LINUX_DEATHSIG_H

#include "linux/abi.h"
#include "sched/bind.h"

/* It stays with the door: the thread has no kernel thread of its own to keep it. */
WF_INLINE bool lx_deathsig_is_at_door(const struct lx_thread *self)
{
	return self == lx.main && !wf_is_bound(&self->base);
}

/* On main's kernel thread, before there is another one. */
void lx_deathsig_start(struct lx_thread *main);
/* Main is about to have a kernel thread of its own, or to execute a program on the one that it runs on; or no more. */
void lx_deathsig_to_own(const struct lx_thread *self);
void lx_deathsig_to_door(const struct lx_thread *self);
/* The thread ends, perhaps some time before its kernel thread. Main's goes on: that kernel thread stays. */
void lx_deathsig_end(const struct lx_thread *self);

#endif
