// SPDX-License-Identifier: Apache-2.0
/*
 * The poller that the scheduler is given at its start: all of io/ behind one table of functions.
 *
 * Called by: linux/start.c.
 */
#ifndef WF_IO_EPOLL_DRIVER_H
#define WF_IO_EPOLL_DRIVER_H

#include <stdbool.h>

struct wf_io_driver;
extern const struct wf_io_driver wf_epoll_driver;
/* 0, or -errno of the call that is named. In a fork child: wf_epoll_forget() first. */
int wf_epoll_init(const char **out_call);
/* are_others: a process with the same table goes on using the descriptors, so they stay open. */
void wf_epoll_forget(bool are_others);
/* One of the runtime's own descriptors: the program must not close or replace it. */
bool wf_fd_is_own(int fd);

#endif
