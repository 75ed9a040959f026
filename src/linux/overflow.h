// SPDX-License-Identifier: Apache-2.0
/*
 * Whether a fault is that of a stack that is too small, and whose.
 *
 * Called by: sigfault.c, when a fault is about to end the process, or to enter a handler if that is asked for. A program
 * that does not overflow pays nothing: all is found out from the fault.
 */
#ifndef WF_LINUX_OVERFLOW_H
#define WF_LINUX_OVERFLOW_H

#include "linux/abi.h"

enum lx_overflow_stack {
	LX_OVERFLOW_THREAD,
	LX_OVERFLOW_MAIN,
	LX_OVERFLOW_SIGNAL, /* an alternate stack */
	LX_OVERFLOW_FIBER,  /* a stack of the program's own that libweft has made */
};

#define LX_FIBER_NAME_BYTES 48

struct lx_overflow_fiber {
	uintptr_t low, high;            /* of its stack, without guard */
	char name[LX_FIBER_NAME_BYTES]; /* of the program's: empty where there is none, cut off */
};

struct lx_overflow {
	const struct lx_thread *t;
	const struct wf_ucontext *uc;
	uintptr_t addr;
	uintptr_t low, high; /* of the stack, without guard; low 0: without limit */
	enum lx_overflow_stack stack;
	bool may_ask;     /* the kernel: no filter of the program's could kill for it */
	bool is_probable; /* it went past the guard, as a large alloca() does */
	struct lx_overflow_fiber fiber;
};

/* Reads program memory: faults must be open. */
bool lx_overflow_find(struct lx_overflow *out, const struct lx_thread *t,
		      const struct wf_siginfo *info, const struct wf_ucontext *uc);

/* A handler that is entered at uc finds room: on an alternate stack, or because it is no overflow after all. */
bool lx_overflow_has_room(const struct lx_thread *t, const struct sys_sigaction *act,
			  const struct wf_ucontext *uc);

#endif
