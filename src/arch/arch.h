// SPDX-License-Identifier: Apache-2.0
/*
 * The contract of one CPU family, and the guide for a port: all that the rest of src/ may ask of src/arch/<cpu>/.
 *
 * Above this folder nobody includes a header of one family (tools/check-layers): arch.h is the door, and arch/cpu.h, the
 * last thing that it includes, chooses what is behind it. A family brings
 *
 *	1. the headers that arch/cpu.h includes: the types and constants of the next section, and the functions that are
 *	   declared WF_INLINE here; the compiler says which one is missing;
 *	2. the functions that are declared without it, in C or assembly, in the files that src/meson.build lists for it;
 *	3. src/gate/<cpu>/: the decoder, scan.h, sites.h, tramp.h, segment.h and jump.h of src/gate;
 *	4. its line in arch/cpu.h and gate/jump.h.
 *
 * A port may stop half-way. Where src/gate/<cpu>/ is not there, the build (WF_ALONE) has libweft in native mode and nothing else.
 * For that a family brings cpu.h; of the other headers what structures and assembly need; wf_arch_gate_on, which stays
 * WF_GATE_OFF; wf_arch_fiber_switch(), wf_arch_make_fiber(), the functions for rounding modes, wf_arch_get_tls(), memcpy() and kin. wf_cpu_base()
 * says 0: no kernel thread is weft's. arch/aarch64/ is at that; what ends the process there, and each function at the end of
 * alone/nobody.c, is the work that is left, with the gate.
 *
 * The numbers that its assembly relies on are asserted on the C side: sched/thread.h, sched/worker.h, linux/process.c.
 *
 * The assembly calls C by name in these places only: wf_linux_enter(), wf_linux_interrupted(), wf_linux_attention(),
 * wf_linux_make() (linux/dispatch.h), wf_linux_vfork_begin() and kin (linux/process.h), wf_linux_thread_started()
 * (linux/thread.h), wf_linux_handler_attention() and wf_linux_sigreturn() (linux/sigdeliver.h), wf_self_come_in()
 * (sched/self.h), wf_arch_fiber_personality() (native/fiber.c).
 *
 * A CPU without a second base register: for what it does in place of one see ARCHITECTURE.md, "Which kernel thread am I".
 */
#ifndef WF_ARCH_ARCH_H
#define WF_ARCH_ARCH_H

#include "base/base.h"

/* --- types and constants of the family ---
 *
 * struct wf_frame	the registers of an intercepted system call, at least: nr, its number; next, the address behind its
 *			instruction; resume, where the gate leaves to; WF_FRAME_KEEPS_BIT of that is up until C code has
 *			seen it where the site keeps vector registers. WF_ARG0(f) to WF_ARG5(f) are the arguments.
 * WF_FRAME_BYTES, WF_RED_ZONE	its size, and what the ABI lets a leaf function have below the stack pointer.
 * struct wf_ucontext, wf_sigframe, wf_siginfo, wf_stack_t	as the kernel lays them out; of a context flags, link,
 *			stack, sigmask and fpstate are looked at, the registers through the functions below.
 * WF_LEGACY_FP_BYTES	the state of floating point that every handler's frame has.
 * struct wf_switch_frame, WF_SAVED_BY_SWITCH(X), WF_SAVED_BY_SIGNAL(X)	where the registers of a thread lie while it
 *			is on no CPU, for readers from outside; WF_UC_SHOWN(X): those that a report of a crash shows. The last
 *			two say for each register a name and the I of WF_UC_I, its place in reg[] of the context.
 * WF_KT_*, WF_T_*, WF_GATE_*, WF_RESTART_*, WF_CHILD_*	what assembly and C agree on.
 * WF_BYTES_OF_CALL	of the longest instruction that calls.
 * WF_USER_END		the program's addresses are below it.
 */
struct wf_frame;
struct wf_ucontext;
struct wf_sigframe;
struct wf_kthread; /* one kernel thread; sched/worker.h */

/* --- the processor; tests/model has its own of these --- */

#ifndef WF_MODEL_CHECKER
/* In a loop that waits for another processor. */
WF_INLINE void wf_cpu_pause(void);
/* A counter of constant rate, the same on all processors; read in some nanoseconds, in order or not. */
WF_INLINE uint64_t wf_cpu_cycles(void);
/*
 * Counts one further; what it was. For a word that one kernel thread writes, and its handlers: nothing interrupts it in the
 * middle, but it is no atomic operation for other processors.
 */
WF_INLINE uint64_t wf_cpu_claim(uint64_t *count);
/* The thread pointer of the running thread. */
WF_INLINE uintptr_t wf_cpu_tls(void);
/* The base register: our kernel thread, or NULL; also where the program may have written it. */
WF_INLINE uintptr_t wf_cpu_base(void);
/*
 * wf_cpu_self_word(offset): the word there of struct wf_kthread, on a kernel thread that is weft's, in one load where that
 * can be had.
 */
/* A real system call: no errno, nothing but what the kernel destroys. */
WF_INLINE long wf_syscall6(long nr, long a, long b, long c, long d, long e, long f);
/* A request of valgrind's, by instructions that do nothing anywhere else: its answer, or 0. */
WF_INLINE uint64_t wf_cpu_ask_valgrind(const volatile uint64_t args[6]);
/* Once, at the start; a build with -Dpoison=true destroys what a system call may destroy. */
WF_INLINE void wf_cpu_poison(void);
#endif

/* Code that tells the processor that it waits for another one, as loops that spin do. */
bool wf_arch_has_pause(const unsigned char *code, size_t n);

/* Locks of this processor order less than they should; what wf_lock_taken() left is made a fence: 0 or -errno. */
bool wf_erratum_is_here(void);
int wf_erratum_fence_locks(void);

/* --- switching --- */

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

/*
 * From one stack of a thread to another, in the program's code (native/fiber.c): save and go on as wf_arch_switch() does. value
 * is what the call that goes on returns.
 */
void *wf_arch_fiber_switch(void **save_sp, void *to_sp, void *value);

/*
 * Build a switch frame below top, with the caller's rounding modes, that enters entry(fiber, value). entry never returns.
 * An unwinder finds what fiber's parent was left in as the caller: fiber begins with WF_FIBER_SP and WF_FIBER_PARENT.
 */
void *wf_arch_make_fiber(void *top, void (*entry)(void *fiber, void *value), void *fiber);

/* Rounding, exceptions that are masked: two words, which a new thread inherits as well. */
void wf_arch_get_fp_modes(uint32_t out[2]);
void wf_arch_set_fp_modes(const uint32_t modes[2]);

/* Thread pointer of the running thread (FS base on x86-64). */
uintptr_t wf_arch_get_tls(void);
void wf_arch_set_tls(uintptr_t tls);

/*
 * Store all that a system call keeps and wf_arch_switch() does not: x87 and vector registers. at is 64-byte aligned
 * and takes what a signal frame does.
 */
void wf_arch_store_vectors(void *at);
void wf_arch_load_vectors(const void *at);

/* --- which kernel thread we are --- */

/*
 * The kernel thread that we run on, or NULL for a kernel thread that is not weft's. On x86-64 it is the GS base, so what the
 * program has there has to be kept for it where it uses that itself; see sched/self.h.
 */
void wf_arch_set_self(struct wf_kthread *k);
uintptr_t wf_arch_get_base(void);
void wf_arch_set_base(uintptr_t base);

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

/* --- the gate --- */

/* (a) WF_GATE_*: what the gate does with a call, and whose the base register is in the program's code. */
extern uint32_t wf_arch_gate_on;

#ifndef WF_ALONE
/* The stack pointer of the interrupted call, and the frame that belongs to one. */
WF_INLINE uint64_t wf_frame_sp(const struct wf_frame *f);
WF_INLINE struct wf_frame *wf_frame_at(uint64_t sp);
/* The address of the system call instruction. */
WF_INLINE uintptr_t wf_frame_site(const struct wf_frame *f);
/* The call's result. */
WF_INLINE long wf_frame_result(const struct wf_frame *f);
WF_INLINE void wf_frame_answer(struct wf_frame *f, long result);
/* As the kernel leaves a call that it has not made: made again, it is the same call. */
WF_INLINE void wf_frame_untouch(struct wf_frame *f);
/* Of a caller that is not weft's, before there is a result: what it has in the base register. */
WF_INLINE uintptr_t wf_frame_stranger_base(const struct wf_frame *f);
#endif

/* Build a switch frame below frame that finishes the switch and then leaves the gate through frame. */
void *wf_arch_make_gate_context(struct wf_frame *frame);

/* Leave the gate natively: this kernel thread is a plain process now. */
WF_NORETURN void wf_arch_gate_leave(struct wf_frame *f);

/*
 * A real call that may block, with the attention word looked at last: -ERESTARTNOINTR if it is set, and nothing was done. A
 * kick between that look and the instruction, or in the call, is for wf_arch_leave_window().
 */
long wf_arch_raw_call(long nr, const long args[6], const uint32_t *attention);

/*
 * A clone whose child runs on another stack, at whose end lies what it has to do first: WF_CHILD_BYTES for
 * wf_linux_child_begin(), and behind them a copy of the caller's frame, through which it leaves the gate natively.
 */
long wf_arch_raw_clone(long nr, long a, long b, long c, long d, long e);

/*
 * Memory of the program, which may not be there: 0 or -EFAULT. The handler of a fault asks wf_arch_end_access() whether it
 * was in one of these: true, and the context goes on where they return -EFAULT.
 */
long wf_arch_copy(void *dst, const void *src, size_t n);
long wf_arch_load32(const uint32_t *p, uint32_t *out);
long wf_arch_cas32(uint32_t *p, uint32_t *expected, uint32_t desired);
bool wf_arch_end_access(struct wf_ucontext *uc);

/* --- contexts that a signal interrupted --- */

#ifndef WF_ALONE
WF_INLINE uintptr_t wf_uc_pc(const struct wf_ucontext *uc);
WF_INLINE void wf_uc_set_pc(struct wf_ucontext *uc, uintptr_t pc);
WF_INLINE uintptr_t wf_uc_sp(const struct wf_ucontext *uc);
/* The frame pointer, where the program keeps one. */
WF_INLINE uintptr_t wf_uc_fp(const struct wf_ucontext *uc);
/* Of the system call that it stands behind. */
WF_INLINE void wf_uc_set_result(struct wf_ucontext *uc, long result);
/* A SIGSEGV: by an access to memory that is not there, and not by running it; and by a write. */
WF_INLINE bool wf_uc_is_data_fault(const struct wf_ucontext *uc);
WF_INLINE bool wf_uc_is_write_fault(const struct wf_ucontext *uc);

/* The handler that a context is about to enter, as wf_arch_enter_handler() takes it. */
struct wf_uc_handler {
	void *sp, *handler;
	long sig;
	void *info, *uc;
};
WF_INLINE struct wf_uc_handler wf_uc_handler(const struct wf_ucontext *uc);
/* Do the WF_BYTES_OF_CALL bytes from before on end with an instruction that calls? */
WF_INLINE bool wf_arch_is_call(const uint8_t *before);
#endif

/*
 * A kick found the runtime in uc, with the attention word set: in a window that must not be left so, it goes on where the
 * word is looked at again, or where the call returns that was about to be made or was interrupted.
 */
void wf_arch_leave_window(struct wf_ucontext *uc);

/* Right behind the instruction of wf_arch_raw_call(). */
bool wf_arch_is_behind_raw_call(const struct wf_ucontext *uc);

/* --- frames of signals, as the kernel builds them --- */

/* Bytes of the FPU state that uc points to (0 when there is none). */
size_t wf_sigframe_fp_bytes(const struct wf_ucontext *uc);

/* Room that wf_sigframe_save() needs for the largest frame on this machine. */
size_t wf_sigframe_save_bytes(size_t min_sigstack);

/*
 * Copy the context uc into area so that the kernel can return to it from there; area is 64-byte aligned.
 * Returns the copied ucontext.
 */
struct wf_ucontext *wf_sigframe_save(void *area, const struct wf_ucontext *uc);

/*
 * Lay out a frame below sp (the red zone already taken off): sets *out_fp where fp_bytes of FPU state go.
 * The frame's address satisfies the ABI's alignment at a function entry.
 */
struct wf_sigframe *wf_sigframe_place(uintptr_t sp, size_t fp_bytes, void **out_fp);

/* A fresh FPU control state in uc's FPU area, as the kernel gives a handler. */
void wf_sigframe_reset_fp(struct wf_ucontext *uc);

/* Edit uc, whose state frame has taken down, so that resuming it enters the frame's handler. */
void wf_sigframe_enter(struct wf_ucontext *uc, struct wf_sigframe *frame, void *handler, int sig);

/*
 * The context of the call f, as a signal would have found it: behind the instruction, or at it if restarts. fp: its FPU
 * state, whole or legacy.
 */
void wf_sigframe_of_call(struct wf_ucontext *uc, const struct wf_frame *f, bool restarts,
			 bool is_whole, void *fp);

/* Store the current state as a legacy frame of WF_LEGACY_FP_BYTES at fp (64-byte aligned). */
void wf_sigframe_store_legacy_fp(void *fp);

/* The same with all that the kernel saves by itself, so not AMX: its bytes, and to store it. */
size_t wf_sigframe_whole_fp_bytes(void);
void wf_sigframe_store_whole_fp(void *fp);

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

/* Where handlers return to: the program's, through wf_linux_sigreturn(), and the runtime's own, which need no gate. */
void wf_arch_restorer(void);
void wf_arch_restorer_native(void);

#include "arch/cpu.h"

#endif
