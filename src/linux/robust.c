// SPDX-License-Identifier: Apache-2.0
/* Robust lists; see robust.h. */
#include "linux/robust.h"
#include "linux/calls.h"

#define ROBUST_LIMIT 2048 /* as the kernel: a list that is longer is a loop */

/* struct robust_list_head */
struct head {
	uintptr_t next;
	long offset;
	uintptr_t pending;
};

/*
 * The lowest bit of a link says that the lock inherits priorities. False: there is no lock, so this is no list, and the kernel goes
 * no further. A thread whose list is garbage, such as one on a stack that is long gone, would fault 2,048 times at its end.
 */
static bool tell(void (*died)(uint32_t *addr, bool is_pi, bool is_pending, uint32_t tid),
		 uintptr_t entry, const struct head *head, bool is_pending, uint32_t tid)
{
	uint32_t *addr = (uint32_t *)((entry & ~1ul) + (uintptr_t)head->offset);
	uint32_t value;

	if ((uintptr_t)addr % sizeof(*addr) || wf_arch_load32(addr, &value) < 0)
		return false;
	died(addr, entry & 1, is_pending, tid);
	return true;
}

void lx_robust_walk(struct lx_thread *t,
		    void (*died)(uint32_t *addr, bool is_pi, bool is_pending, uint32_t tid))
{
	struct head head;
	uintptr_t entry, next;

	if (!t->robust_head || wf_arch_copy(&head, t->robust_head, sizeof(head)) < 0)
		return;
	entry = head.next;
	for (int i = 0; i < ROBUST_LIMIT && (entry & ~1ul) != (uintptr_t)t->robust_head; i++) {
		/* Read the link first: the owner of a freed lock may unmap it. */
		if (wf_arch_copy(&next, (void *)(entry & ~1ul), sizeof(next)) < 0)
			return;
		if ((entry & ~1ul) != (head.pending & ~1ul) &&
		    !tell(died, entry, &head, false, lx_tid(t)))
			return;
		entry = next;
	}
	if (head.pending & ~1ul)
		(void)tell(died, head.pending, &head, true, lx_tid(t));
}

void lx_robust_walk_all(void (*died)(uint32_t *addr, bool is_pi, bool is_pending, uint32_t tid))
{
	uint32_t n = wf_thread_slots();

	for (uint32_t i = 0; i < n; i++) {
		struct wf_thread *t = wf_thread_slot(i);
		enum wf_state s = wf_state_of(wf_load_acquire(&t->state));

		if (s != WF_FREE && s != WF_NEW && s != WF_DEAD)
			lx_robust_walk(lx_of(t), died);
	}
}

long sysc_set_robust_list(struct wf_frame *f)
{
	struct lx_thread *self = lx_self();

	if (WF_ARG1(f) != 24)
		return -EINVAL;
	self->robust_head = (uint32_t *)WF_ARG0(f);
	return 0;
}

long sysc_get_robust_list(struct wf_frame *f)
{
	struct lx_thread *t = lx_by_tid((uint32_t)WF_ARG0(f));
	uintptr_t head;
	size_t len = 24;

	if (!t)
		return lx_raw(f); /* another process's, or nobody's */
	head = (uintptr_t)t->robust_head;
	if (wf_arch_copy((void *)WF_ARG2(f), &len, sizeof(len)) < 0 ||
	    wf_arch_copy((void *)WF_ARG1(f), &head, sizeof(head)) < 0)
		return -EFAULT;
	return 0;
}
