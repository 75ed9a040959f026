// SPDX-License-Identifier: Apache-2.0
/* Which thread gets which signal; see signals.c. */
#ifndef WF_LINUX_SIGNALS_H
#define WF_LINUX_SIGNALS_H

#include "linux/abi.h"

/* To one thread. 0, -EAGAIN, or -ESRCH: it has ended. */
long lx_signal_post(uint32_t tid, int sig, const struct wf_siginfo *info);
/* To the process, by the door. first: the thread that shall have it if it wants it; NULL: as Linux chooses. */
void lx_signal_process(int sig, const struct wf_siginfo *info, struct lx_thread *first);
/* To the process, by one of its threads. 0 or -EAGAIN. */
long lx_signal_send_self(int sig, const struct wf_siginfo *info);
/* The next pending signal of set, the thread's own before the process's, or 0. */
int lx_signal_take(struct lx_thread *t, uint64_t set, struct wf_siginfo *out);
void lx_signal_set_mask(struct lx_thread *t, uint64_t mask);
/* The caller takes no signal of set any more: whoever wants those of the process must hear of them. */
void lx_signal_retarget(uint64_t set);
/* Hook of the scheduler: the thread that was told of a signal of the process may not run soon; one that is in a call may have it. */
void lx_signal_stranded(void);
/* A stop signal ends what is pending of SIGCONT, and the other way round. */
void lx_signal_prepare(int sig);
/* Drop what is pending of set, everywhere. */
void lx_signal_flush(uint64_t set);
void lx_signal_drop_timer(int timer_id);
/*
 * A write that ended with ret raised a signal on this kernel thread, which blocks it: a closed pipe, or the limit
 * of a file's size. It would stay pending here, and strike at whoever execs from here.
 */
void lx_signal_take_raised(long ret);
void lx_signal_thread_init(struct lx_thread *t, const struct lx_thread *parent);
void lx_signal_thread_exit(struct lx_thread *t);

#endif
