// SPDX-License-Identifier: Apache-2.0
/*
 * Switching between contexts; see arch.h for the contract.
 *
 * A saved context is a stack pointer to this frame:
 *
 *   [sp+56] address to continue at
 *   [sp+48] rbp
 *   [sp+16..40] r12 r13 r14 r15   (rbx at 8)
 *   [sp+ 8] rbx
 *   [sp+ 0] mxcsr (4 bytes), x87 control word (2 bytes)
 *
 * Only callee-saved state: the compiler treats a switch as a call.
 *
 * It ends in a return, against the usual advice, because nearly every saved context continues behind the same
 * call instruction (in wf_worker_switch_away()): the return stack predicts it, and stays balanced for the five
 * returns from there to the gate, which are the same in every parked thread. Ending in a jump leaves one entry
 * too many and mispredicts all of them: a yield took 94 ns instead of 43.
 */
#include "arch/asm.h"
#include "arch/x86_64/cfi.h"
#include "arch/x86_64/offsets.h"

	.text

FUNC(wf_arch_switch)
	.cfi_startproc
	PUSH_SAVED %rbp
	PUSH_SAVED %r15
	PUSH_SAVED %r14
	PUSH_SAVED %r13
	PUSH_SAVED %r12
	PUSH_SAVED %rbx
	subq	$8, %rsp
	.cfi_adjust_cfa_offset 8
	stmxcsr	(%rsp)
	fnstcw	4(%rsp)
	movq	%rsp, (%rdi)
	/*
	 * The control word is nearly always equal, and on Intel a load of it is slow. mxcsr has the flags of what was computed, too, and
	 * what was just stored there takes longer to be read back and compared than to be loaded: 1.6 ns.
	 */
	movzwl	4(%rsp), %ecx
	movq	%rsi, %rsp
	ldmxcsr	(%rsp)
	cmpw	%cx, 4(%rsp)
	jne	2f
1:
	movq	8(%rsp), %rbx
	movq	16(%rsp), %r12
	movq	24(%rsp), %r13
	movq	32(%rsp), %r14
	movq	40(%rsp), %r15
	movq	48(%rsp), %rbp
	leaq	56(%rsp), %rsp
	.cfi_def_cfa_offset 8
	CFI_KEPT_RESTORED
	ret
	.cfi_endproc
2:	.cfi_startproc
	.cfi_undefined %rip
	fldcw	4(%rsp)
	jmp	1b
	.cfi_endproc
END_FUNC(wf_arch_switch)

FUNC(wf_arch_switch_last)
	.cfi_startproc
	.cfi_undefined %rip
	movq	%rdi, %rsp
	ldmxcsr	(%rsp)
	fldcw	4(%rsp)
	movq	8(%rsp), %rbx
	movq	16(%rsp), %r12
	movq	24(%rsp), %r13
	movq	32(%rsp), %r14
	movq	40(%rsp), %r15
	movq	48(%rsp), %rbp
	movq	56(%rsp), %rcx
	leaq	64(%rsp), %rsp
	jmp	*%rcx
	.cfi_endproc
END_FUNC(wf_arch_switch_last)

/* First instructions of a context made by wf_arch_make_context(): rbx = entry, r12 = arg. */
FUNC(wf_arch_context_start)
	.cfi_startproc
	.cfi_undefined %rip
	movq	%r12, %rdi
	call	*%rbx
	ud2
	.cfi_endproc
END_FUNC(wf_arch_context_start)

/* The same of wf_arch_make_resume(): the address of the ucontext is at rsp. */
FUNC(wf_arch_resume_start)
	.cfi_startproc
	CFI_CONTEXT_FROM_RSP
	movq	%r12, %rdi
	call	*%rbx
	ud2
	.cfi_endproc
END_FUNC(wf_arch_resume_start)

/*
 * long wf_arch_spawn_raw(flags, stack_top, tid): the child pops fn and arg from its stack and calls fn(arg); when
 * that returns, it ends.
 */
FUNC(wf_arch_spawn_raw)
	.cfi_startproc
	.cfi_undefined %rip
	movl	$56, %eax
	movq	%rdx, %r10
	xorl	%r8d, %r8d
	syscall
	testq	%rax, %rax
	jz	1f
	ret
1:	popq	%rax
	popq	%rdi
	xorl	%ebp, %ebp
	call	*%rax
	movl	$60, %eax
	xorl	%edi, %edi
	syscall
	ud2
	.cfi_endproc
END_FUNC(wf_arch_spawn_raw)

FUNC(wf_arch_sigreturn)
	.cfi_startproc
	CFI_CONTEXT_AT_RDI
	movq	%rsp, %rdx
LABEL(wf_arch_sigreturn_check)
	movq	%rdx, %rsp
	cmpl	$0, (%rsi)
	jne	1f
	cmpl	$WF_GATE_SHARED, wf_arch_gate_on(%rip)
	jne	2f
	movq	WF_T_USER_BASE - WF_T_ATTENTION(%rsi), %rcx
	wrgsbase %rcx
2:	movq	%rdi, %rsp
	movl	$15, %eax
	syscall
LABEL(wf_arch_sigreturn_end)
	ud2
1:	ret
	.cfi_endproc
END_FUNC(wf_arch_sigreturn)

/* Return address of the runtime's own handlers (kick, faults): the kernel restores what they left. */
	.cfi_startproc
	CFI_CONTEXT_AT_RSP
	nop
FUNC(wf_arch_restorer_native)
	movl	$15, %eax
	syscall
	.cfi_endproc
END_FUNC(wf_arch_restorer_native)

NO_EXEC_STACK
