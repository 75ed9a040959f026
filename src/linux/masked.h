// SPDX-License-Identifier: Apache-2.0
/* Waits of the kernel's own with another mask: see masked.c. */
#ifndef WF_LINUX_MASKED_H
#define WF_LINUX_MASKED_H

#include "linux/abi.h"

struct lx_masked {
	const void *mask; /* of the program's memory; NULL: none */
	size_t bytes;
	long (*look)(const long args[6]); /* without waiting: what there is, or -EINTR */
	bool is_certain;                  /* to wait */
};

/* The call with args, where the mask is taken out. It is not made again after a handler. */
WF_PARKS long lx_masked_wait(struct wf_frame *f, const long args[6], const struct lx_masked *how);

#endif
