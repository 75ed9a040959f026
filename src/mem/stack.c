// SPDX-License-Identifier: Apache-2.0
/* Mapping and guarding stacks; see stack.h. */
#include "mem/stack.h"
#include "sys/syscall.h"

#define MADV_NOHUGEPAGE 15
#define MADV_GUARD_INSTALL 102

/*
 * The kernel joins no neighbour to a mapping that has another flag than the neighbour. A debugger that writes a core
 * file stops at the first guard inside a mapping: nobody else's memory may come behind one of ours.
 */
static bool is_set_apart(char *mapping, size_t bytes)
{
	return sys3(__NR_madvise, mapping, bytes, MADV_NOHUGEPAGE) == 0;
}

/*
 * A page that nobody may touch. Not by mprotect() where the kernel (6.13 and later) knows better: that splits
 * the mapping, and a fork pays for each piece, five for every kernel thread there ever was.
 */
static void guard(char *page, bool may_be_inside)
{
	if (!may_be_inside || sys3(__NR_madvise, page, WF_PAGE, MADV_GUARD_INSTALL) < 0)
		(void)sys3(__NR_mprotect, page, WF_PAGE, 0);
}

char *wf_stack_map(size_t bytes, uint32_t nr)
{
	char *mapping = sys_map(nr * WF_STACK_STRIDE(bytes));
	bool is_apart;

	if (!mapping)
		return NULL;
	is_apart = is_set_apart(mapping, nr * WF_STACK_STRIDE(bytes));
	for (uint32_t i = 0; i < nr; i++)
		guard(mapping + i * WF_STACK_STRIDE(bytes), is_apart);
	return mapping + WF_PAGE;
}

void wf_stack_unmap(void *low, size_t bytes, uint32_t nr)
{
	sys_unmap((char *)low - WF_PAGE, nr * WF_STACK_STRIDE(bytes));
}
