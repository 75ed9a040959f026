// SPDX-License-Identifier: Apache-2.0
/* Signals that some signalfd shows; see sigfd.c. */
#ifndef WF_LINUX_SIGFD_H
#define WF_LINUX_SIGFD_H

#include "linux/abi.h"

/* Some signalfd was made for sig, and shows what the kernel has. */
bool lx_signalfd_shows(int sig);

#endif
