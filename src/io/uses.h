// SPDX-License-Identifier: Apache-2.0
/*
 * Calls that outlive the number of their descriptor; uses.c says how.
 *
 * Called by: linux/fdwait.h around every call that may wait, linux/fds.c where numbers are closed.
 */
#ifndef WF_IO_USES_H
#define WF_IO_USES_H

#include "io/fd.h"

/* Returns wf_fd_seq(fd). */
uint32_t wf_fd_use_init(struct wf_fd_use *u, int fd);
/* Around every attempt on u->fd, which may change here. -EBADF: closed before the call had waited. */
void wf_fd_use_try(struct wf_fd_use *u);
WF_INLINE void wf_fd_use_tried(struct wf_fd_use *u)
{
	if (!u->tries)
		return;
	(void)wf_fetch_sub(u->tries, 1u);
	u->tries = NULL;
}
void wf_fd_use_done(struct wf_fd_use *u);
/* The same, and wf_fd_drained(u->fd, seq). */
void wf_fd_use_done_drained(struct wf_fd_use *u, uint32_t seq);

/* The number is about to be closed: wf_fd_forget(), and calls that wait on it keep its file. */
void wf_fd_closing(int fd);
/* One of the runtime's own descriptors, or no more: the program must not close or replace it. */
void wf_fd_set_own(int fd, bool is_own);
void wf_uses_forget(bool are_others);

#endif
