// SPDX-License-Identifier: Apache-2.0
/* A kernel thread of one's own; see own.h. The runtime's code. */
#include "native/own.h"
#include "linux/bind.h"

int wf_own_bind(struct wf_thread *self)
{
	long ret = 0;

	wf_self_enter(self);
	if (self)
		ret = lx_bind_for(LX_BIND_ASKED);
	wf_self_leave(self);
	return (int)ret;
}
