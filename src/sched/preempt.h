// SPDX-License-Identifier: Apache-2.0
/* The kick, where it arrives; see preempt.c. */
#ifndef WF_SCHED_PREEMPT_H
#define WF_SCHED_PREEMPT_H

#include "base/base.h"

struct wf_kthread;
struct wf_siginfo;

/*
 * The signal that interrupts a kernel thread of ours, and wakes the door: the number that glibc keeps for
 * set*id broadcasts, which never reaches the kernel under weft. No number is taken from the program.
 */
#define WF_SIG_KICK 33
/*
 * The same when the kernel queues no more real-time signals for the user: SIGSYS, which every kernel thread
 * leaves open as it comes from seccomp filters. Those say so in its siginfo, and other processes who they are.
 */
#define WF_SIG_KICK_SPARE 31
bool wf_is_kick(int sig, const struct wf_siginfo *info);

/* Signal handler for WF_SIG_KICK. */
void wf_preempt_on_kick(int sig, void *info, void *uc);
/* k, the caller's, has just given its worker away: a kick for that one's sake comes now, or never. */
void wf_preempt_settle(struct wf_kthread *k);
/* A kernel thread is new: mask, alternate stack, FPU. Called by itself. */
void wf_preempt_init_kthread(struct wf_kthread *k);
bool wf_in_own_text(uintptr_t pc);
/* Real mask of every kernel thread that runs threads: all but the kick and synchronous faults. */
uint64_t wf_worker_sigmask(void);

#endif
