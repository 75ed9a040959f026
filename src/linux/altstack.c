// SPDX-License-Identifier: Apache-2.0
/* Alternate stacks of threads: what sigaltstack() sets and shows, and what a handler's frame says of it. */
#include "linux/altstack.h"
#include "linux/abi.h"
#include "linux/calls.h"

#include <signal.h>

#define MIN_ALTSTACK 2048 /* the kernel's MINSIGSTKSZ; libc's is a function */

bool lx_is_on_alternate(const struct wf_stack_t *s, uintptr_t sp)
{
	/* A handler on a stack that disarms itself does not know it as its own. */
	return s->size && !(s->flags & LX_SS_AUTODISARM) && sp > (uintptr_t)s->sp &&
	       sp - (uintptr_t)s->sp <= s->size;
}

/* As sigaltstack() tells a thread at sp of its own. */
static struct wf_stack_t altstack_seen(const struct lx_thread *t, uintptr_t sp)
{
	struct wf_stack_t s = t->altstack;

	s.flags &= LX_SS_AUTODISARM;
	if (!s.size)
		s.flags |= SS_DISABLE;
	else if (lx_is_on_alternate(&s, sp))
		s.flags |= SS_ONSTACK;
	return s;
}

static long set_altstack(struct lx_thread *t, const struct wf_stack_t *s, uintptr_t sp)
{
	const int mode = s->flags & ~LX_SS_AUTODISARM;

	if (lx_is_on_alternate(&t->altstack, sp))
		return -EPERM;
	if (mode != 0 && mode != SS_ONSTACK && mode != SS_DISABLE)
		return -EINVAL;
	if (mode == SS_DISABLE)
		t->altstack = (struct wf_stack_t){ .flags = s->flags };
	else if (s->size < MIN_ALTSTACK)
		return -ENOMEM;
	else
		t->altstack = *s;
	return 0;
}

void lx_altstack_restore(struct lx_thread *t, const struct wf_stack_t *s, uintptr_t sp)
{
	(void)set_altstack(t, s, sp);
}

long sysc_sigaltstack(struct wf_frame *f)
{
	struct lx_thread *self = lx_self();
	struct wf_stack_t old = altstack_seen(self, wf_frame_sp(f)), fresh;
	long ret = 0;

	if (WF_ARG0(f)) {
		if (wf_arch_copy(&fresh, (const void *)WF_ARG0(f), sizeof(fresh)) < 0)
			return -EFAULT;
		ret = set_altstack(self, &fresh, wf_frame_sp(f));
	}
	if (ret == 0 && WF_ARG1(f) && wf_arch_copy((void *)WF_ARG1(f), &old, sizeof(old)) < 0)
		return -EFAULT;
	return ret;
}
