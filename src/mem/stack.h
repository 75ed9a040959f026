// SPDX-License-Identifier: Apache-2.0
/*
 * Stacks of the runtime's own: mapped, each with a guard page below it.
 *
 * Called by: sched/runtime.c, for kernel threads. Stacks of the program's threads are libc's business (linux/stacks.c),
 * those of fibers the thread's that has them (native/stackpool.c).
 */
#ifndef WF_MEM_STACK_H
#define WF_MEM_STACK_H

#include "base/base.h"

/* The scheduler's own context; and for handlers: a signal frame with the largest FPU state, twice, and room to work. */
#define WF_KSTACK_BYTES (64ul << 10)
#define WF_ALTSTACK_BYTES WF_KSTACK_BYTES

/* From the low end of one to that of the next in the same mapping. */
#define WF_STACK_STRIDE(bytes) ((bytes) + WF_PAGE)

/* The low end of the first of nr stacks that lie side by side, WF_STACK_STRIDE(bytes) apart. NULL without memory. */
char *wf_stack_map(size_t bytes, uint32_t nr);
/* All of them. */
void wf_stack_unmap(void *low, size_t bytes, uint32_t nr);

#endif
