// SPDX-License-Identifier: Apache-2.0
/* Real calls that may block; see call.c. */
#ifndef WF_LINUX_CALL_H
#define WF_LINUX_CALL_H

#include "linux/abi.h"

/*
 * A real call that may block. certain: the worker is handed on first; else the monitor takes it when the call
 * lasts. Interrupted by a signal for this thread: what the kernel says of such a call, see restart.
 */
enum lx_restart {
	LX_RESTART_SYS,    /* -ERESTARTSYS: again after a handler with SA_RESTART */
	LX_RESTART_NOHAND, /* -ERESTARTNOHAND: again if another thread takes the signal */
	LX_RESTART_NEVER   /* -EINTR */
};
WF_PARKS long lx_blocking_call(long nr, const long args[6], bool certain, enum lx_restart restart);
WF_PARKS long lx_blocking(struct wf_frame *f, bool certain);
/*
 * The rest of a call of which a part is done, and which the kernel ends in part for no signal: it is made, and handlers
 * wait, also those of signals that came before.
 */
WF_PARKS long lx_blocking_rest(long nr, const long args[6]);
/* One that waits for a disk, and so is back soon. */
WF_PARKS long lx_disk(struct wf_frame *f);
/*
 * The same for a call that loses nothing when it is interrupted: when it lasts, the monitor ends it instead of
 * taking the worker. Then, if it had done nothing yet, it returns -EINTR, and the caller waits in a way that
 * holds no kernel thread; a signal for the program is -ERESTARTSYS. brief: it is certain to last, so the
 * worker is handed on first, and the call ends within a millisecond.
 */
WF_PARKS long lx_breakable_call(long nr, const long args[6]);
/*
 * epoll_pwait2() right here while nobody else needs the worker, until *until at the latest, which may come nearer: see
 * sched/direct.h. False: not made. -EINTR or -ERESTARTNOINTR in *out: it was interrupted, for whatever reason, and had
 * done nothing.
 */
bool lx_direct_wait(int set, void *events, long nr_events, int64_t *until, long *out);
/* The first argument is this descriptor. */
WF_PARKS long lx_breakable_on(struct wf_frame *f, int fd);
WF_PARKS long lx_brief(struct wf_frame *f);

#endif
