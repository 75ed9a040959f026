// SPDX-License-Identifier: Apache-2.0
/* The kick, where it arrives; see preempt.c. */
#ifndef WF_SCHED_PREEMPT_H
#define WF_SCHED_PREEMPT_H

#include "base/base.h"
#include "sched/kick.h"

struct wf_kthread;
struct wf_siginfo;

bool wf_is_kick(int sig, const struct wf_siginfo *info);

/* Signal handler for WF_SIG_KICK; and make it that, for the process, and of the spare one, which linux/ then takes. */
void wf_preempt_on_kick(int sig, void *info, void *uc);
void wf_preempt_take_kicks(void);
/* k, the caller's, has just given its worker away: a kick for that one's sake comes now, or never. */
void wf_preempt_settle(struct wf_kthread *k);
/* A kernel thread is new: mask, alternate stack, FPU. Called by itself. */
void wf_preempt_init_kthread(struct wf_kthread *k);
/* Real mask of every kernel thread that runs threads: all but the kick and synchronous faults. */
uint64_t wf_worker_sigmask(void);

#endif
