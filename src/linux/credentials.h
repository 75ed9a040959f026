// SPDX-License-Identifier: Apache-2.0
/*
 * Users and groups of the process; see credentials.c.
 */
#ifndef WF_LINUX_CREDENTIALS_H
#define WF_LINUX_CREDENTIALS_H

#include "linux/abi.h"

#define LX_SIG_SETXID 33 /* glibc's own; sent in user space only, see WF_SIG_KICK */

/* f sends sig, and that belongs to a change of credentials by libc. */
bool lx_credentials_is_round(const struct wf_frame *f, int sig);
/* Such a signal is about to be sent; it was not to be had. */
void lx_credentials_sent(void);
void lx_credentials_not_sent(void);
void lx_credentials_forget(void);

#endif
