// SPDX-License-Identifier: Apache-2.0
/*
 * Policies and priorities of threads, as policy.c keeps them for all calls that set or show them.
 */
#ifndef WF_LINUX_POLICY_H
#define WF_LINUX_POLICY_H

#include "linux/abi.h"

/* The thread of ours that a tid argument names; *out_foreign when it is another process's. */
struct lx_thread *lx_sched_named(uint32_t tid, bool *out_foreign);
/* The policy without SCHED_RESET_ON_FORK. */
uint32_t lx_sched_plain(uint32_t policy);
bool lx_sched_is_realtime(uint32_t policy);
/* Validated as the kernel does: 0 or -errno. */
long lx_sched_set_policy(struct lx_thread *t, uint32_t policy, int priority);
/* Before the caller executes a program, which inherits what the kernel has of it. */
void lx_sched_show_kernel(void);
void lx_sched_set_nice(struct lx_thread *t, int nice);
/* May the caller have so low a nice value? */
bool lx_sched_may_be_nice(int nice);
/* Policy and priorities of a new thread. */
void lx_sched_inherit(struct lx_thread *t, const struct lx_thread *parent);

#endif
