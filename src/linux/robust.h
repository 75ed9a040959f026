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

#endif
