// SPDX-License-Identifier: Apache-2.0
/* Robust lists: the locks that a thread holds, and that pass on when it ends. */
#ifndef WF_LINUX_ROBUST_H
#define WF_LINUX_ROBUST_H

#include "linux/abi.h"

/*
 * Call died() for each lock that t holds, the oldest last, by the list that it has registered: the owner tid of the
 * futex at addr ended. is_pending: it was about to take or to release it, and may have released it without a word
 * to those who wait.
 */
void lx_robust_walk(struct lx_thread *t,
		    void (*died)(uint32_t *addr, bool is_pi, bool is_pending, uint32_t tid));
/* The process ends: every thread's. */
void lx_robust_walk_all(void (*died)(uint32_t *addr, bool is_pi, bool is_pending, uint32_t tid));

/* futex_pi.c: mark the word and let the next waiter have it. */
void lx_futex_owner_died(uint32_t *addr, bool is_pi, bool is_pending, uint32_t tid);

/* heir.c: a module was loaded that names functions for robust locks. */
void lx_heir_expect(void);
/* The program has mapped shared memory by this call. */
void lx_heir_mapped(const struct wf_frame *f);
/* The runtime has started. */
void lx_heir_start(void);
/* By the door. */
void lx_heir_answer(void);
/* Another program is about to be executed; it was not. */
void lx_heir_leave(void);
void lx_heir_stay(void);
/* It is a child of the process that natively is not there: is it pid, are there no others? */
bool lx_heir_is(int pid);
bool lx_heir_is_only_child(int options);
void lx_heir_forget(void);

#endif
