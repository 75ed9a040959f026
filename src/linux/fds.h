// SPDX-License-Identifier: Apache-2.0
/* Descriptors that are made, duplicated, told something, closed; see fds.c. */
#ifndef WF_LINUX_FDS_H
#define WF_LINUX_FDS_H

#include "linux/abi.h"
#include "linux/msg.h"

/* A message of the program is about to be sent: descriptors in it get owners elsewhere. */
void lx_fd_sent(const struct msghdr_k *user);
/* A message has arrived: descriptors in it are new here. */
void lx_fd_received(const struct msghdr_k *user);
/* unshare(), and what it means for the table of descriptors. */
WF_PARKS long lx_fds_unshare(struct wf_frame *f);

#endif
