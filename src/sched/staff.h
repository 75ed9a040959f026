// SPDX-License-Identifier: Apache-2.0
/*
 * Kernel threads as such, whatever they carry: their structures and stacks, the spares among them, and those that have ended.
 *
 * Called by: runtime.c and worker.c for carriers, bind.c for a thread's own one, io/ring.c and poller.c for helpers.
 *
 * Invariant: a structure is never given back, so whoever has found one may read it for ever. One that has ended is used again
 * once the kernel has cleared its tid: then nothing runs on its stacks any more.
 */
#ifndef WF_SCHED_STAFF_H
#define WF_SCHED_STAFF_H

#include "sched/kthread.h"

struct wf_thread;

/* One that does not run yet; NULL without memory, or while the runtime stops. */
struct wf_kthread *wf_staff_new(void);
/* It runs loop(k) from now on. 0 or -errno. */
long wf_staff_spawn(struct wf_kthread *k, void (*loop)(void *));
/* One more that waits to be needed. 0 or -errno. */
long wf_staff_spawn_spare(void);
/* For bind.c: a kernel thread for t alone, made by the caller's. */
struct wf_kthread *wf_staff_spawn_bound(struct wf_thread *t);
/*
 * A kernel thread that never carries a worker: loop() gets its structure, which has arg in helper_arg, says who it is
 * (wf_arch_set_self(), wf_preempt_init_kthread()), and returns after wf_staff_end() if at all.
 */
bool wf_staff_spawn_helper(void (*loop)(void *), void *arg);
/* k is about to end, or was never begun. */
void wf_staff_end(struct wf_kthread *k);

void wf_staff_add_spare(struct wf_kthread *k);
struct wf_kthread *wf_staff_take_spare(void);
/* k waits as a spare for long. True: others are enough, it ends. */
bool wf_staff_retire_spare(struct wf_kthread *k);

/* Name the calling kernel thread, which is ours, for ps(1), top(1) and perf(1): role:program. By itself. */
void wf_staff_name(const char *role);

/* But for the door. */
bool wf_staff_have_all_ended(void);
/* They have: all that they had is given back. */
void wf_staff_done(void);

#endif
