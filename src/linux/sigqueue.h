// SPDX-License-Identifier: Apache-2.0
/* Queues of pending signals; see sigqueue.c. */
#ifndef WF_LINUX_SIGQUEUE_H
#define WF_LINUX_SIGQUEUE_H

#include "linux/abi.h"

void lx_pending_init(struct lx_pending *p, uint32_t owner);
/* 0; -ESRCH if p is no longer owner's; -EAGAIN if the signal is new, not from the kernel, and over the limit. */
long lx_pending_add(struct lx_pending *p, uint32_t owner, int sig, const struct wf_siginfo *info,
		    bool is_new);
void lx_pending_push_front(struct lx_pending *p, int sig, const struct wf_siginfo *info);
/* The next of set, or 0. */
int lx_pending_take(struct lx_pending *p, uint64_t set, struct wf_siginfo *out);
void lx_pending_drop(struct lx_pending *p, uint64_t set);
/* The thread ends: nothing is there, and nothing is added any more. */
void lx_pending_close(struct lx_pending *p);
/* Signals of one timer. */
void lx_pending_drop_timer(struct lx_pending *p, int timer_id);
/* All that is there of set comes from timers. */
bool lx_pending_is_timers(struct lx_pending *p, uint64_t set);

/* Of a timer that was set: a POSIX timer, or one of setitimer() or alarm(). */
bool lx_signal_is_timers(const struct wf_siginfo *info);

#endif
