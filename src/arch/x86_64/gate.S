// SPDX-License-Identifier: Apache-2.0
/*
 * The common entry of intercepted system calls, and every way out of it.
 *
 * A trampoline (gate/patch.c) arrives here with rsp lowered by the red zone, r11 = address behind the
 * system call instruction, rcx = where to resume; everything else as the program left it. Like the kernel
 * we may destroy rcx and r11, return in rax, and preserve all the rest, vector registers included: C code
 * behind this entry is compiled for general registers only.
 *
 * The unwinder sees the frame as called from the system call instruction itself (return address at CFA-136),
 * so exception tables and cancellation landing pads of the caller apply.
 *
 * The exit tests the thread's attention word and then restores registers. A kick that lands between the
 * two is sent back to the test by the kick handler (wf_arch_gate_exit_begin .. wf_arch_gate_exit_end), so a
 * signal posted at any instant is seen before the program runs on.
 */
#include "arch/asm.h"
#include "arch/x86_64/cfi.h"
#include "arch/x86_64/offsets.h"

#define NR_CLONE 56
#define NR_VFORK 58
#define NR_EXECVE 59
#define NR_PRCTL 157
#define NR_SECCOMP 317
#define NR_EXECVEAT 322
#define NR_USERFAULTFD 323
#define NR_CLONE3 435

#ifdef WF_POISON
	.data
	.balign 4
LABEL(wf_arch_poison_wide)	/* the processor has AVX-512: destroy zmm0-31 as well */
	.long	0
#endif

	.text

	/* The two words that a trampoline brought; both registers are free afterwards. */
	.macro SAVE_RETURN
	PUSH	%r11
	.cfi_rel_offset %rip, 0
	PUSH	%rcx
	.endm

	.macro UNDO_SAVE_RETURN
	popq	%rcx
	.cfi_adjust_cfa_offset -8
	popq	%r11
	.cfi_adjust_cfa_offset -8
	.cfi_register %rip, %r11
	.endm

	/*
	 * The direction flag is clear, as everywhere in compiled code. r12 is the frame, and not rbx: libdw takes rbx for lost
	 * in a caller of code that does not save it.
	 */
	.macro SAVE_REST
	PUSH	%rax
	PUSH	%rdi
	PUSH	%rsi
	PUSH	%rdx
	PUSH	%rax
	PUSH	%r8
	PUSH	%r9
	PUSH	%r10
	PUSH_SAVED %rbx
	PUSH_SAVED %rbp
	PUSH_SAVED %r12
	PUSH_SAVED %r13
	PUSH_SAVED %r14
	PUSH_SAVED %r15
	movq	%rsp, %r12
	.cfi_def_cfa_register %r12
	andq	$-16, %rsp
	.endm

	.macro SAVE_FRAME
	SAVE_RETURN
	SAVE_REST
	.endm

	/* CFA and register rules of code that runs with reg = frame. */
	.macro CFI_IN_FRAME reg
	.cfi_def_cfa \reg, WF_FRAME_BYTES + WF_RED_ZONE
	.cfi_offset %rip, -136
	.cfi_offset %r15, WF_FRAME_R15 - 256
	.cfi_offset %r14, WF_FRAME_R14 - 256
	.cfi_offset %r13, WF_FRAME_R13 - 256
	.cfi_offset %r12, WF_FRAME_R12 - 256
	.cfi_offset %rbp, WF_FRAME_RBP - 256
	.cfi_offset %rbx, WF_FRAME_RBX - 256
	.endm

	.macro RESTORE_CALLEE_AND_ARGS
	movq	WF_FRAME_R15(%rsp), %r15
	movq	WF_FRAME_R14(%rsp), %r14
	movq	WF_FRAME_R13(%rsp), %r13
	movq	WF_FRAME_R12(%rsp), %r12
	movq	WF_FRAME_RBP(%rsp), %rbp
	movq	WF_FRAME_RBX(%rsp), %rbx
	movq	WF_FRAME_R10(%rsp), %r10
	movq	WF_FRAME_R9(%rsp), %r9
	movq	WF_FRAME_R8(%rsp), %r8
	movq	WF_FRAME_RAX(%rsp), %rax
	movq	WF_FRAME_RDX(%rsp), %rdx
	movq	WF_FRAME_RSI(%rsp), %rsi
	movq	WF_FRAME_RDI(%rsp), %rdi
	movq	WF_FRAME_RESUME(%rsp), %rcx
	movq	WF_FRAME_NEXT(%rsp), %r11
	.endm

	/* r12: the frame, which rsp is afterwards. */
	.macro ANSWER
	movq	%r12, %rdi
	call	wf_linux_enter
	movq	%rax, WF_FRAME_RAX(%r12)
	cmpq	$-WF_RESTART_LAST, %rax
	jae	.Lfailed
	movq	%r12, %rsp
	.endm

	/* To one of ours, after the first thread was made. rcx: the kernel thread. shared: where the GS base tells nothing. */
	.macro COME_IN shared
	cmpl	$WF_GATE_ON, wf_arch_gate_on(%rip)
	jne	\shared
	SAVE_RETURN
	rdgsbase %rcx
	testq	%rcx, %rcx
	jz	.Lnot_ours
	.endm

/*
 * The entry for code that may keep values in vector registers across the call, as compilers do around an inline instruction:
 * wf_linux_enter() notes it, and whoever lets others use them keeps them for us.
 */
FUNC(wf_arch_gate_entry_keeping)
	.cfi_startproc
	.cfi_def_cfa %rsp, WF_RED_ZONE
	.cfi_register %rip, %r11
	COME_IN	.Lshared_keeping
	cmpl	$NR_VFORK, %eax
	je	.Lvfork_ours
	SAVE_REST
	btsq	$WF_FRAME_KEEPS_BIT, WF_FRAME_RESUME(%r12)
	ANSWER
	jmp	wf_arch_gate_exit_begin
	.cfi_endproc
END_FUNC(wf_arch_gate_entry_keeping)

/*
 * The entry for the vDSO: the runtime reads its clock there, also where no thread runs. While the processor's own counter is
 * of no use for that, the vDSO asks the kernel.
 */
FUNC(wf_arch_gate_entry_clock)
	.cfi_startproc
	.cfi_def_cfa %rsp, WF_RED_ZONE
	.cfi_register %rip, %r11
	COME_IN	.Lshared_clock
	cmpb	$0, WF_KT_IN_CLOCK(%rcx)
	jne	.Lnot_ours
	SAVE_REST
	ANSWER
	jmp	wf_arch_gate_exit_begin
	.cfi_endproc
END_FUNC(wf_arch_gate_entry_clock)

FUNC(wf_arch_gate_entry)
	.cfi_startproc
	.cfi_def_cfa %rsp, WF_RED_ZONE
	.cfi_register %rip, %r11
	COME_IN	.Lshared
	cmpl	$NR_VFORK, %eax
	je	.Lvfork_ours
	SAVE_REST
	ANSWER
	.cfi_endproc

	/* rsp = frame. Nothing but the frame is live. */
LABEL(wf_arch_gate_exit_begin)
	.cfi_startproc
	CFI_IN_FRAME %rsp
	movq	%gs:WF_KT_CUR, %rcx
	cmpl	$0, WF_T_ATTENTION(%rcx)
	jne	.Lattention
#ifdef WF_POISON
	cmpb	$0, WF_T_KEEPS_VECTORS(%rcx)
	jne	1f
	.irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
	vpcmpeqd %ymm\n, %ymm\n, %ymm\n
	.endr
	cmpl	$0, wf_arch_poison_wide(%rip)
	je	1f
	.irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
	vpternlogd $0xff, %zmm\n, %zmm\n, %zmm\n
	.endr
1:
#endif
	cmpl	$WF_GATE_SHARED, wf_arch_gate_on(%rip)
	jne	.Lrestore
	movq	WF_T_USER_BASE(%rcx), %rcx
	wrgsbase %rcx
.Lrestore:
	RESTORE_CALLEE_AND_ARGS
	leaq	WF_FRAME_BYTES + WF_RED_ZONE(%rsp), %rsp
	.cfi_def_cfa %rsp, 0
	CFI_KEPT_RESTORED
	.cfi_register %rip, %r11
LABEL(wf_arch_gate_exit_last)
	jmp	*%rcx
LABEL(wf_arch_gate_exit_end)
	.cfi_endproc

	/* rax: an error of the program's, or one that says how an interrupted call goes on. */
.Lfailed:
	.cfi_startproc
	CFI_IN_FRAME %r12
	leaq	WF_RESTART_LAST(%rax), %rcx
	cmpq	$WF_RESTART_LAST - WF_RESTART_FIRST, %rcx
	jbe	.Linterrupted
	cmpq	$-WF_EINTR, %rax
	je	.Linterrupted
	movq	%r12, %rsp
	jmp	wf_arch_gate_exit_begin
.Linterrupted:
	movq	%r12, %rdi
	call	wf_linux_interrupted
	movq	%r12, %rsp
	jmp	wf_arch_gate_exit_begin
	.cfi_endproc

.Lattention:
	.cfi_startproc
	CFI_IN_FRAME %r12
	movq	%rsp, %r12
	andq	$-16, %rsp
	movq	%r12, %rdi
	call	wf_linux_attention
	movq	%r12, %rsp
	jmp	wf_arch_gate_exit_begin
	.cfi_endproc

	/* void wf_arch_gate_leave(frame): leave natively; this kernel thread is a plain process now. */
FUNC(wf_arch_gate_leave)
	.cfi_startproc
	CFI_IN_FRAME %rdi
	movq	%rdi, %rsp
	jmp	.Lrestore
	.cfi_endproc

	/* A kernel thread that is not weft's, or vfork: undo what was pushed. */
.Lnot_ours:
	.cfi_startproc
	.cfi_def_cfa %rsp, WF_RED_ZONE + 16
	.cfi_offset %rip, -136
	UNDO_SAVE_RETURN
	jmp	.Lforeign
	.cfi_endproc
.Lvfork_ours:
	.cfi_startproc
	.cfi_def_cfa %rsp, WF_RED_ZONE + 16
	.cfi_offset %rip, -136
	UNDO_SAVE_RETURN
	jmp	.Lvfork
	.cfi_endproc

	/*
	 * No weft thread exists, or we are none: only the calls that make one are of interest, those after which none may be
	 * made, and those that execute another program.
	 */
.Lnot_started:
	.cfi_startproc
	.cfi_def_cfa %rsp, WF_RED_ZONE
	.cfi_register %rip, %r11
.Lforeign:
	cmpl	$NR_CLONE3, %eax
	je	.Lmaking
	cmpl	$NR_CLONE, %eax
	je	.Lmaking
	cmpl	$NR_PRCTL, %eax
	je	.Lmaking
	cmpl	$NR_SECCOMP, %eax
	je	.Lmaking
	cmpl	$NR_USERFAULTFD, %eax
	je	.Lmaking
	cmpl	$NR_EXECVE, %eax
	je	.Lmaking
	cmpl	$NR_EXECVEAT, %eax
	je	.Lmaking
.Lpass:
	cmpl	$NR_VFORK, %eax
	je	.Lraw_vfork
	PUSH	%rcx
	PUSH	%r11
	.cfi_rel_offset %rip, 0
	syscall
	popq	%r11
	.cfi_adjust_cfa_offset -8
	popq	%rcx
	.cfi_adjust_cfa_offset -8
	.cfi_register %rip, %r11
	leaq	WF_RED_ZONE(%rsp), %rsp
	jmp	*%rcx
	.cfi_endproc

	/* The child borrows our stack: nothing of ours may lie on it. rdx and r9 are dead across vfork(). */
.Lraw_vfork:
	.cfi_startproc
	.cfi_def_cfa %rsp, WF_RED_ZONE
	.cfi_register %rip, %r11
	movq	%rcx, %r9
	movq	%r11, %rdx
	syscall
	movq	%rdx, %r11
	leaq	WF_RED_ZONE(%rsp), %rsp
	jmp	*%r9
	.cfi_endproc

	/*
	 * One of these before the first thread, or by a kernel thread that is not weft's: into C, which decides;
	 * may return as a weft thread. The GS base is not ours, and C finds none there: the program's is in rax of the frame.
	 */
.Lmaking:
	.cfi_startproc
	.cfi_def_cfa %rsp, WF_RED_ZONE
	SAVE_FRAME
	rdgsbase %rbx
	movq	%rbx, WF_FRAME_RAX(%r12)
	xorl	%ecx, %ecx
	wrgsbase %rcx
	movq	%r12, %rdi
	call	wf_linux_make
	movq	%r12, %rsp
	CFI_IN_FRAME %rsp
	rdgsbase %rcx
	testq	%rcx, %rcx
	jnz	wf_arch_gate_exit_begin
	wrgsbase %rbx
	jmp	.Lrestore
	.cfi_endproc

	/* The flags tell why the gate is not just on. The program has the GS base: who we are is asked with everything saved. */
.Lshared_clock:
	.cfi_startproc
	.cfi_def_cfa %rsp, WF_RED_ZONE
	.cfi_register %rip, %r11
	jb	.Lnot_started
	SAVE_FRAME
	call	wf_self_come_in
	testq	%rax, %rax
	jz	.Lshared_foreign
	cmpb	$0, WF_KT_IN_CLOCK(%rax)
	jne	.Lshared_foreign
	jmp	.Lshared_answer
	.cfi_endproc
.Lshared_keeping:
	.cfi_startproc
	.cfi_def_cfa %rsp, WF_RED_ZONE
	.cfi_register %rip, %r11
	jb	.Lnot_started
	SAVE_FRAME
	call	wf_self_come_in
	testq	%rax, %rax
	jz	.Lshared_foreign
	cmpl	$NR_VFORK, WF_FRAME_NR(%r12)
	je	.Lshared_vfork
	btsq	$WF_FRAME_KEEPS_BIT, WF_FRAME_RESUME(%r12)
	jmp	.Lshared_answer
	.cfi_endproc
.Lshared:
	.cfi_startproc
	.cfi_def_cfa %rsp, WF_RED_ZONE
	.cfi_register %rip, %r11
	jb	.Lnot_started
	SAVE_FRAME
	call	wf_self_come_in
	testq	%rax, %rax
	jz	.Lshared_foreign
	cmpl	$NR_VFORK, WF_FRAME_NR(%r12)
	je	.Lshared_vfork
.Lshared_answer:
	ANSWER
	jmp	wf_arch_gate_exit_begin
	.cfi_endproc

	/* As if nothing had been saved. */
	.macro UNDO_SAVE_FRAME
	.cfi_startproc
	CFI_IN_FRAME %r12
	movq	%r12, %rsp
	CFI_IN_FRAME %rsp
	RESTORE_CALLEE_AND_ARGS
	leaq	WF_FRAME_BYTES(%rsp), %rsp
	.cfi_def_cfa %rsp, WF_RED_ZONE
	CFI_KEPT_RESTORED
	.cfi_register %rip, %r11
	.endm

.Lshared_foreign:
	UNDO_SAVE_FRAME
	jmp	.Lforeign
	.cfi_endproc
.Lshared_vfork:
	UNDO_SAVE_FRAME
	jmp	.Lvfork
	.cfi_endproc

	/* vfork under weft: hand the worker on, run the call with no frame of ours live, take a worker again. */
.Lvfork:
	.cfi_startproc
	.cfi_def_cfa %rsp, WF_RED_ZONE
	SAVE_FRAME
	movq	%r12, %rdi
	call	wf_linux_vfork_begin
	movq	%r12, %rsp
	CFI_IN_FRAME %rsp
	RESTORE_CALLEE_AND_ARGS
	movq	WF_FRAME_NR(%rsp), %rax
	leaq	WF_FRAME_BYTES(%rsp), %rsp
	.cfi_def_cfa %rsp, WF_RED_ZONE
	CFI_KEPT_RESTORED
	movq	%rcx, %r9
	movq	%r11, %rdx
	.cfi_register %rip, %rdx
	syscall
	testq	%rax, %rax
	jz	.Lvfork_child
	movq	%r9, %rcx
	movq	%rdx, %r11
	.cfi_register %rip, %r11
	SAVE_FRAME
	movq	%r12, %rdi
	call	wf_linux_vfork_end
	movq	%r12, %rsp
	CFI_IN_FRAME %rsp
	jmp	wf_arch_gate_exit_begin
	.cfi_endproc

	/* In the child: what is the program's own again, and no weft identity. libc keeps something in rdi. */
.Lvfork_child:
	.cfi_startproc
	.cfi_def_cfa %rsp, WF_RED_ZONE
	.cfi_register %rip, %rdx
	PUSH	%rdx
	.cfi_rel_offset %rip, 0
	PUSH	%rdi
	PUSH	%r9
	PUSH_SAVED %rbx
	movq	%rsp, %rbx
	.cfi_def_cfa_register %rbx
	andq	$-16, %rsp
	call	wf_linux_vfork_child
	movq	%rbx, %rsp
	.cfi_def_cfa_register %rsp
	popq	%rbx
	.cfi_adjust_cfa_offset -8
	.cfi_restore %rbx
	popq	%r9
	.cfi_adjust_cfa_offset -8
	popq	%rdi
	.cfi_adjust_cfa_offset -8
	popq	%r11
	.cfi_adjust_cfa_offset -8
	.cfi_register %rip, %r11
	xorl	%eax, %eax
	leaq	WF_RED_ZONE(%rsp), %rsp
	jmp	*%r9
	.cfi_endproc
END_FUNC(wf_arch_gate_entry)

/* First instructions of a new thread: rbx = its frame. The call it was cloned by returns 0. */
FUNC(wf_arch_gate_thread_start)
	.cfi_startproc
	.cfi_undefined %rip
	movq	%rbx, %rsp
	andq	$-16, %rsp
	call	wf_linux_thread_started
	movq	%rbx, %rsp
	jmp	wf_arch_gate_exit_begin
	.cfi_endproc
END_FUNC(wf_arch_gate_thread_start)

/*
 * long wf_arch_raw_clone(nr, a, b, c, d, e): a clone whose child runs on another stack, at whose end lie what it has
 * to do first (struct wf_child, rsp) and behind that a copy of the caller's frame; it leaves the gate natively.
 * rdi=nr rsi=a rdx=b rcx=c r8=d r9=e
 */
FUNC(wf_arch_raw_clone)
	.cfi_startproc
	movq	%rdi, %rax
	movq	%rsi, %rdi
	movq	%rdx, %rsi
	movq	%rcx, %rdx
	movq	%r8, %r10
	movq	%r9, %r8
	syscall
	testq	%rax, %rax
	jz	1f
	ret
	.cfi_endproc
1:	.cfi_startproc
	leaq	WF_CHILD_BYTES(%rsp), %rbx
	CFI_IN_FRAME %rbx
	movq	WF_CHILD_BASE(%rsp), %rcx
	wrgsbase %rcx
	movq	%rsp, %rdi
	andq	$-16, %rsp
	call	wf_linux_child_begin
	movq	%rbx, %rsp
	CFI_IN_FRAME %rsp
	RESTORE_CALLEE_AND_ARGS
	xorl	%eax, %eax
	leaq	WF_FRAME_BYTES + WF_RED_ZONE(%rsp), %rsp
	.cfi_def_cfa %rsp, 0
	CFI_KEPT_RESTORED
	.cfi_register %rip, %r11
	jmp	*%rcx
	.cfi_endproc
END_FUNC(wf_arch_raw_clone)

/*
 * long wf_arch_raw_call(nr, args[6], attention): a system call that may block, made with the attention word
 * tested as the last thing before it: -ERESTARTNOINTR if it is set, and nothing was done. A kick between the
 * test and the instruction is moved to one of the labels behind; so is one that interrupted the call, since the
 * kernel then points at the instruction again. rcx tells the two apart: the instruction writes it.
 * rdi=nr rsi=args rdx=attention word
 */
FUNC(wf_arch_raw_call)
	.cfi_startproc
	movq	%rdi, %rax
	movq	%rdx, %r11
	movq	0(%rsi), %rdi
	movq	16(%rsi), %rdx
	movq	24(%rsi), %r10
	movq	32(%rsi), %r8
	movq	40(%rsi), %r9
	movq	8(%rsi), %rsi
	xorl	%ecx, %ecx
LABEL(wf_arch_raw_call_begin)
	cmpl	$0, (%r11)
	jne	wf_arch_raw_call_not_made
	syscall
LABEL(wf_arch_raw_call_end)
	ret
LABEL(wf_arch_raw_call_not_made)
	movq	$-513, %rax /* -ERESTARTNOINTR */
	ret
LABEL(wf_arch_raw_call_interrupted)
	movq	$-4, %rax
	ret
	.cfi_endproc
END_FUNC(wf_arch_raw_call)

NO_EXEC_STACK
