// SPDX-License-Identifier: Apache-2.0
/*
 * Which kernel thread we are where the base register does not say it: in a program that uses the register itself.
 *
 * Called by: the gate's entries and the place where handlers return (gate.S, handler.S), the kernel for a kick
 * (preempt.c) or a fault (linux/start.c), and whoever the program's code reaches in another way (gate/modules.c).
 *
 * Invariant: in the runtime's code the base register is ours, but between an entry's first instruction and its call of
 * wf_self_come_in(), and between an exit's last look at the attention word and its jump. In the program's code it is the
 * program's once wf_arch_gate_on is WF_GATE_SHARED; a thread that has been in its code since before has ours there still,
 * and has not written it.
 */
#ifndef WF_SCHED_SELF_H
#define WF_SCHED_SELF_H

#include "arch/arch.h"
#include "sched/kthread.h"

/*
 * From the program's code into the runtime's: the base register is ours afterwards, and what was there is kept in the
 * running thread. NULL, and nothing has changed: this kernel thread is not weft's.
 */
struct wf_kthread *wf_self_come_in(void);

/* A signal handler of ours, which the kernel may have called anywhere. */
void wf_self_handle(void (*handler)(int sig, void *info, void *context), int sig, void *info,
		    void *context);

/* Code of the runtime, which no kick preempts; functions of the public interface count as the program's (native/face.h). */
bool wf_self_is_own_text(uintptr_t pc);

/* The thread that we are, whatever the base register holds; NULL on a kernel thread that is not weft's. */
struct wf_thread *wf_self_find(void);

/*
 * Both ends of a function of the runtime that the program has called, not the gate. self: what wf_self_find() says, which stays
 * right across parks. The caller looks at the attention word afterwards, in code that is not the runtime's own; see native/face.h.
 */
WF_INLINE void wf_self_enter(const struct wf_thread *self)
{
	if (WF_UNLIKELY(wf_load_acquire(&wf_arch_gate_on) == WF_GATE_SHARED) && self)
		(void)wf_self_come_in();
}

WF_INLINE void wf_self_leave(const struct wf_thread *self)
{
	if (WF_UNLIKELY(wf_load_acquire(&wf_arch_gate_on) == WF_GATE_SHARED) && self)
		wf_arch_set_base(self->user_base);
}

#endif
