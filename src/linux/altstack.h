// SPDX-License-Identifier: Apache-2.0
/* Alternate stacks of threads. */
#ifndef WF_LINUX_ALTSTACK_H
#define WF_LINUX_ALTSTACK_H

#include "linux/abi.h"

/* sp lies on s, and s is not one that a handler has disarmed. */
bool lx_is_on_alternate(const struct wf_stack_t *s, uintptr_t sp);
/* A handler returns to sp: the stack becomes what its frame says, if the kernel would allow it. */
void lx_altstack_restore(struct lx_thread *t, const struct wf_stack_t *s, uintptr_t sp);

#endif
