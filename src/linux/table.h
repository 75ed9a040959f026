// SPDX-License-Identifier: Apache-2.0
/* Which handler answers a call. */
#ifndef WF_LINUX_TABLE_H
#define WF_LINUX_TABLE_H

#include "linux/abi.h"

#define LX_MAX_NR 512

struct lx_call {
	long (*handler)(struct wf_frame *f);
};
extern const struct lx_call lx_table[LX_MAX_NR];

#endif
