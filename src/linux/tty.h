// SPDX-License-Identifier: Apache-2.0
/* Terminals and job control: what the kernel does to a process in the background. */
#ifndef WF_LINUX_TTY_H
#define WF_LINUX_TTY_H

#include "linux/abi.h"

/* fd is the controlling terminal of the process, not the master's side of one. */
bool lx_tty_is_controlling(int fd);
/* A read of it, which may block. */
WF_PARKS long lx_tty_read(struct wf_frame *f, int fd);
/* Before a write to fd, a character device, or a request that changes it. 0, or what the call returns. */
WF_PARKS long lx_tty_before_write(int fd);
WF_PARKS long lx_tty_before_ioctl(int fd, uint32_t request);

#endif
