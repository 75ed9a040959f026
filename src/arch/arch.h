// SPDX-License-Identifier: Apache-2.0
/*
 * The contract of one CPU family: everything that sched/ and above may ask of arch/<cpu>/.
 *
 * A port supplies: the switch, the first frame of a thread, thread pointer access, the per-kernel-thread
 * base pointer, raw system calls, the gate entry and its frame, the signal frame, and the raw clone stubs.
 * The offsets that assembly relies on are listed in arch/<cpu>/offsets.h and asserted on the C side.
 */
#ifndef WF_ARCH_ARCH_H
#define WF_ARCH_ARCH_H

#include "base/base.h"

struct wf_kthread;  /* one kernel thread; sched/worker.h */
struct wf_ucontext; /* what a signal interrupted; arch/<cpu>/sigframe.h */
struct wf_frame;    /* the registers of an intercepted system call; arch/<cpu>/frame.h */

/*
 * Save the callee-saved registers and the floating-point control words on the current stack, store the
 * stack pointer in *save_sp, and go on where to_sp was saved.
 */
void wf_arch_switch(void **save_sp, void *to_sp);

/* Like wf_arch_switch() for a context that is never resumed. */
WF_NORETURN void wf_arch_switch_last(void *to_sp);

/*
 * Build a switch frame below top that enters entry(arg) with top's alignment honoured; returns the sp to
 * switch to. entry never returns.
 */
void *wf_arch_make_context(void *top, void (*entry)(void *), void *arg);

/*
 * The same for an entry that will end in wf_arch_sigreturn(uc): until then whoever unwinds its stack finds the context
 * in uc as its caller, and a reader from outside finds uc itself WF_RESUME_UC bytes above what is returned.
 */
void *wf_arch_make_resume(void *top, void (*entry)(void *), void *arg, struct wf_ucontext *uc);
#define WF_RESUME_UC 64

/* Build a switch frame below frame that finishes the switch and then leaves the gate through frame. */
void *wf_arch_make_gate_context(struct wf_frame *frame);

/* Thread pointer of the running thread (FS base on x86-64). */
uintptr_t wf_arch_get_tls(void);
void wf_arch_set_tls(uintptr_t tls);

/*
 * The kernel thread that we run on, or NULL for a kernel thread that is not weft's. On x86-64 it is the GS base, so what the
 * program has there has to be kept for it where it uses that itself; see sched/self.h.
 */
void wf_arch_set_self(struct wf_kthread *k);
uintptr_t wf_arch_get_base(void);
void wf_arch_set_base(uintptr_t base);

/* (a) WF_GATE_*: what the gate does with a call, and whose the base register is in the program's code. */
extern uint32_t wf_arch_gate_on;

/*
 * Store all that a system call keeps and wf_arch_switch() does not: x87 and vector registers. at is 64-byte aligned
 * and takes what a signal frame does.
 */
void wf_arch_store_vectors(void *at);
void wf_arch_load_vectors(const void *at);

/* Code that tells the processor that it waits for another one, as loops that spin do. */
bool wf_arch_has_pause(const unsigned char *code, size_t n);

/* True when user space may read and write the base registers and this CPU family is complete. */
bool wf_arch_supported(const char **out_why);

/*
 * Start a kernel thread that shares everything with this process and calls fn(arg) on the given stack; fn
 * never returns. Returns its tid or -errno. *out_tid is its tid until the kernel is done with it, then 0.
 * It has its maker's signal mask, and is taken for its maker until it calls wf_arch_set_self(): block all signals.
 */
long wf_arch_spawn_kthread(void *stack_top, void (*fn)(void *), void *arg, int *out_tid);

/*
 * The same with a process that shares the memory and nothing else, and of whose end nobody is told. In it fn
 * finds a kernel thread that is not weft's.
 */
long wf_arch_spawn_process(void *stack_top, void (*fn)(void *), void *arg, int *out_pid);

/*
 * Enter a signal frame whose first word (the return address) was already popped: sp points to the ucontext. Returns
 * only if the attention word is set; a kick behind that test is sent back to it.
 */
void wf_arch_sigreturn(void *sp, const uint32_t *attention);

/*
 * Start a signal handler on sp, whose top word is the address to return to. If the attention word is set then,
 * wf_linux_handler_attention() is asked first.
 */
WF_NORETURN void wf_arch_enter_handler(void *sp, void *handler, long sig, void *info, void *uc);

/*
 * Memory of the program, which may not be there: 0 or -EFAULT. A fault in one of these is told by its address to whoever
 * catches faults, see src/linux/sigfault.c.
 */
long wf_arch_copy(void *dst, const void *src, size_t n);
long wf_arch_load32(const uint32_t *p, uint32_t *out);
long wf_arch_cas32(uint32_t *p, uint32_t *expected, uint32_t desired);

#endif
