// SPDX-License-Identifier: Apache-2.0
/*
 * Random schedules: what a kernel may do, but seldom does.
 *
 * For tests (weft run --seed): threads give way before and after their calls, slices end at any moment, woken threads run
 * in any order and on any worker. In a poison build (meson -Dpoison=true) the protocols also pause between their steps.
 * The choices come from a seed, those of each kernel thread for itself: on several workers the kernel has a part in the rest.
 */
#ifndef WF_SCHED_SHUFFLE_H
#define WF_SCHED_SHUFFLE_H

#include "sched/runtime.h"

WF_INLINE bool wf_is_shuffled(void)
{
	return WF_UNLIKELY(wf_rt.is_shuffled);
}

/* From 0 to below n, by the calling kernel thread. */
uint32_t wf_shuffle_below(uint32_t n);
/* The running thread begins a system call. True: it is to let others run first. */
bool wf_shuffle_enters(void);
/* It has been answered: others may come before it goes on. */
void wf_shuffle_leave(void);
/* Another worker than the usual one for a woken thread; NULL: the usual one. self: NULL, or the caller's. */
struct wf_worker *wf_shuffle_worker(struct wf_worker *self);
/* t's turn comes a bit later than it should. */
void wf_shuffle_order(struct wf_thread *t);
/* The monitor's demand on a worker that others wait for: 0, or WF_PREEMPT_*. */
uint32_t wf_shuffle_preempts(void);
/* When the monitor looks next. */
int64_t wf_shuffle_tick_ns(void);
/* A step of a protocol takes long. */
void wf_shuffle_pause(void);

/* Between two steps of a protocol, each of which others may see. */
WF_INLINE void wf_step(void)
{
#ifdef WF_STEPS
	if (wf_is_shuffled())
		wf_shuffle_pause();
#endif
}

#endif
