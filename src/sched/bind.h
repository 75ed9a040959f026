// SPDX-License-Identifier: Apache-2.0
/*
 * Binding: a thread that has a kernel thread for itself, because Linux keeps something of it there.
 */
#ifndef WF_SCHED_BIND_H
#define WF_SCHED_BIND_H

#include "sched/worker.h"

/* The caller keeps the kernel thread that it runs on, and gives its worker away. */
void wf_bind_self(void);
/* The kernel thread has nothing of its own any more: the caller runs on any again. */
WF_PARKS void wf_bind_end(void);
/*
 * t, which never ran, gets a new kernel thread, made by the caller's: it inherits what that one has.
 * 0, -EAGAIN.
 */
long wf_bind_new(struct wf_thread *t);

/*
 * wf_unpark() by one who holds a lock that t is about to take: a kernel thread with a higher priority would run at
 * once, and find it held. Its wake-up waits until wf_bind_wake_held(), after the lock was given up.
 */
bool wf_bind_unpark_held(struct wf_thread *t, enum wf_reason reason);
void wf_bind_wake_slow(struct wf_kthread *k);

WF_INLINE void wf_bind_wake_held(void)
{
	struct wf_kthread *k = wf_own_kthread();

	if (WF_UNLIKELY(k->nr_woken))
		wf_bind_wake_slow(k);
}

WF_INLINE bool wf_is_bound(const struct wf_thread *t)
{
	return wf_load_acquire(&t->bound) != NULL;
}

/* For worker.c: t is ready; its kernel thread runs it. */
void wf_bind_ready(struct wf_thread *t);
/* Until the thread of k is ready. */
void wf_bind_wait(struct wf_kthread *k);
/* Its thread has ended, and so does k. */
WF_NORETURN void wf_bind_exit(struct wf_kthread *k);

#endif
