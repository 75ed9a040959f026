// SPDX-License-Identifier: Apache-2.0
/*
 * Where a handler of the program begins and where it returns to; both test the attention word last, and a kick behind the
 * test is sent back to it, as at the gate's exit (gate.S).
 */
#include "arch/asm.h"
#include "arch/x86_64/cfi.h"
#include "arch/x86_64/offsets.h"

	.text

/*
 * Where a handler's return lands. rsp points behind the return address: at the ucontext. The C part puts
 * the virtual mask back, delivers what is pending now, and leaves a ucontext that the kernel may restore.
 * The call frame information describes the interrupted context, so an unwinder crosses it like the kernel's.
 */
	.balign 16
	.cfi_startproc
	CFI_CONTEXT_AT_RSP
	nop	/* unwinders look up the address before the return address */
FUNC(wf_arch_restorer)
	movq	%rsp, %rbx
	andq	$-16, %rsp
	call	wf_self_come_in
	testq	%rax, %rax	/* zero in a child forked by the handler: native, with its mask and stack in uc */
	jz	.Lnative
LABEL(wf_arch_restorer_check)
	movq	%rbx, %rdi
	movq	%rbx, %rsp
	andq	$-16, %rsp
	call	wf_linux_sigreturn
	movq	%rbx, %rsp
LABEL(wf_arch_restorer_tail)
	movq	%gs:WF_KT_CUR, %rcx
	cmpl	$0, WF_T_ATTENTION(%rcx)
	jne	wf_arch_restorer_check
	cmpl	$WF_GATE_SHARED, wf_arch_gate_on(%rip)
	jne	1f
	movq	WF_T_USER_BASE(%rcx), %rcx
	wrgsbase %rcx
1:	movl	$15, %eax
	syscall
LABEL(wf_arch_restorer_end)
	ud2
.Lnative:
	movq	%rbx, %rsp
	movl	$15, %eax
	syscall
	ud2
	.cfi_endproc
END_FUNC(wf_arch_restorer)

/*
 * void wf_arch_enter_handler(sp, handler, sig, info, uc): the attention word is tested last, with everything in
 * registers that a call keeps, so that the test can be made again.
 */
FUNC(wf_arch_enter_handler)
	.cfi_startproc
	.cfi_undefined %rip
	movq	%rdi, %rbx
	movq	%rsi, %r12
	movq	%rdx, %r13
	movq	%rcx, %r14
	movq	%r8, %r15
LABEL(wf_arch_enter_check)
	movq	%gs:WF_KT_CUR, %rcx
	cmpl	$0, WF_T_ATTENTION(%rcx)
	jne	1f
.Lenter:
	cmpl	$WF_GATE_SHARED, wf_arch_gate_on(%rip)
	jne	2f
	movq	%gs:WF_KT_CUR, %rcx
	movq	WF_T_USER_BASE(%rcx), %rcx
	wrgsbase %rcx
2:	movq	%rbx, %rsp
	movq	%r13, %rdi
	movq	%r14, %rsi
	movq	%r15, %rdx
	xorl	%eax, %eax
	jmp	*%r12
LABEL(wf_arch_enter_end)
1:	movq	%rbx, %rsp
	andq	$-16, %rsp
	movq	%rbx, %rdi
	movq	%r12, %rsi
	movl	%r13d, %edx
	call	wf_linux_handler_attention
	testb	%al, %al
	jnz	wf_arch_enter_check
	jmp	.Lenter
	.cfi_endproc
END_FUNC(wf_arch_enter_handler)

NO_EXEC_STACK
