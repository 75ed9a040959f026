// SPDX-License-Identifier: Apache-2.0
/*
 * Binding: a thread that has a kernel thread for itself, because Linux keeps something of it there.
 */
#ifndef WF_SCHED_BIND_H
#define WF_SCHED_BIND_H

#include "sched/worker.h"

/* The caller keeps the kernel thread that it runs on, and gives its worker away. */
void wf_bind_self(void);
/* The same where kernel threads are left that run everybody else, or can be made. False: there are none, and nothing is bound. */
WF_PARKS bool wf_bind_try(void);
/* Linux keeps nothing of the caller on its kernel thread any more: from now on it runs on any. */
WF_PARKS void wf_bind_end(void);
/*
 * Bind t, which never ran, to a new kernel thread. The caller's kernel thread makes it, so that it inherits
 * what Linux keeps there. Returns 0 or -EAGAIN.
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

/* For worker.c: the bound thread t is ready; wake its kernel thread, which runs it. */
void wf_bind_ready(struct wf_thread *t);
/* For the kernel thread k itself: sleep until its thread is ready. */
void wf_bind_wait(struct wf_kthread *k);
/* The thread of k has ended: end the kernel thread as well. */
WF_NORETURN void wf_bind_exit(struct wf_kthread *k);

#endif
