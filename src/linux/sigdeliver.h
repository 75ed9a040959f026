// SPDX-License-Identifier: Apache-2.0
/* Handlers of signals, and their frames; see sigdeliver.c. */
#ifndef WF_LINUX_SIGDELIVER_H
#define WF_LINUX_SIGDELIVER_H

#include "linux/abi.h"

/* The gate's exit: the call is over or was interrupted, and a signal may be waiting. */
void lx_signal_exit(struct wf_frame *f);
/* The signals that t may take now, at uc. here: the frame goes below, 0: anywhere; see sigdeliver.c. */
void lx_signal_deliver_all(struct lx_thread *t, struct wf_ucontext *uc, uintptr_t here);
/* Hooks of the scheduler; see sched/driver.h. */
bool lx_signal_interrupted(struct wf_thread *base, void *context);
void lx_signal_resuming(struct wf_thread *base, void *context);
void lx_signal_in_runtime(void *context);

/* By handler.S. */
bool wf_linux_handler_attention(struct wf_sigframe *frame, void *handler, int sig);
void wf_linux_sigreturn(struct wf_ucontext *uc);

#endif
