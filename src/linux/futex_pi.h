// SPDX-License-Identifier: Apache-2.0
/* Locks with priority inheritance, and those of the dead; see futex_pi.c. */
#ifndef WF_LINUX_FUTEX_PI_H
#define WF_LINUX_FUTEX_PI_H

#include "linux/abi.h"

/* is_shared: the owner and other waiters may be another process's. */
WF_PARKS long lx_futex_lock_pi(uint32_t *addr, int64_t deadline, bool is_try, bool is_shared);
long lx_futex_unlock_pi(uint32_t *addr, bool is_shared);
/* FUTEX_WAIT_REQUEUE_PI: on addr, until FUTEX_CMP_REQUEUE_PI moves the thread to the PI word target. */
WF_PARKS long lx_futex_wait_requeue_pi(uint32_t *addr, uint32_t expected, int64_t deadline,
				       uint32_t *target);
long lx_futex_requeue_pi(uint32_t *from, uint32_t nr_wake, uint32_t nr_move, uint32_t *to,
			 uint32_t expected);

/* t is dead, and nobody finds it by its tid any more. */
void lx_futex_thread_ended(struct lx_thread *t);
/* Mark the word, of whichever kind, and let the next waiter have it. */
void lx_futex_owner_died(uint32_t *addr, bool is_pi, bool is_pending, uint32_t tid);

#endif
