// SPDX-License-Identifier: Apache-2.0
/* CPU time of threads; see account.c. */
#ifndef WF_SCHED_ACCOUNT_H
#define WF_SCHED_ACCOUNT_H

#include "base/base.h"

struct wf_kthread;
struct wf_thread;

/* At a switch, only while wf_rt.accounts is set: t leaves k. */
void wf_account_leave(struct wf_kthread *k, struct wf_thread *t);
/* A thread is about to run on k, which did something else until now. */
void wf_account_begin(struct wf_kthread *k);
/* From now on all that k uses is self's, and no longer. */
void wf_account_bind(struct wf_kthread *k, struct wf_thread *self);
void wf_account_unbind(struct wf_kthread *k, struct wf_thread *self);
/* The running thread is another one from now on, although it has not been left: it has used nothing. Not where it is bound. */
void wf_account_restart(struct wf_thread *self);
/* The time that t has used; exact from the first call on. */
int64_t wf_account_cpu_ns(struct wf_thread *t);

#endif
