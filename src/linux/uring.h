// SPDX-License-Identifier: Apache-2.0
/* The program's own rings of io_uring; see uring.c. */
#ifndef WF_LINUX_URING_H
#define WF_LINUX_URING_H

#include "linux/abi.h"

/* Why a program whose rings the main kernel thread owns stays native; NULL: it need not. Before the first thread. */
const char *lx_uring_of_main(void);

#endif
