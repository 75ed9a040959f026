/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Going from one stack of a thread to another; see native/fiber.c.
 *
 * It is the program's code: a kick may preempt it at each instruction, a handler may run there. A kick keeps all registers
 * elsewhere and touches no stack. A handler's frame lies below the stack pointer, and that is set by one instruction: before it
 * all that counts of the old stack lies above, and behind it all that counts of the new one. Nothing of a kernel thread's
 * is used, so it may be another one afterwards. The frame is the same on both stacks (switch.S has the picture), and
 * so whoever unwinds is right at each instruction, too.
 *
 * It ends in a jump where switch.S has a return. That one has gone the same way into the scheduler with every thread,
 * while a resume and a yield are called from different places: the return would never be predicted, the jump is.
 */
#include "arch/asm.h"
#include "arch/x86_64/cfi.h"
#include "arch/x86_64/offsets.h"

	.section weft_face, "ax", @progbits

FUNC(wf_arch_fiber_switch)
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
	movq	%rdx, %rax
	movq	%rsp, (%rdi)
	movzwl	4(%rsp), %ecx
	movq	%rsi, %rsp
	ldmxcsr	(%rsp)
	cmpw	%cx, 4(%rsp)
	jne	2f
1:
	movq	8(%rsp), %rbx
	.cfi_same_value %rbx
	movq	16(%rsp), %r12
	.cfi_same_value %r12
	movq	24(%rsp), %r13
	.cfi_same_value %r13
	movq	32(%rsp), %r14
	.cfi_same_value %r14
	movq	40(%rsp), %r15
	.cfi_same_value %r15
	movq	48(%rsp), %rbp
	.cfi_same_value %rbp
	movq	56(%rsp), %rcx
	leaq	64(%rsp), %rsp
	.cfi_def_cfa_offset 0
	.cfi_register %rip, %rcx
	jmp	*%rcx
	.cfi_endproc
2:	.cfi_startproc
	.cfi_def_cfa %rsp, 64
	.cfi_offset %rbp, -16
	.cfi_offset %r15, -24
	.cfi_offset %r14, -32
	.cfi_offset %r13, -40
	.cfi_offset %r12, -48
	.cfi_offset %rbx, -56
	fldcw	4(%rsp)
	jmp	1b
	.cfi_endproc
END_FUNC(wf_arch_fiber_switch)

/*
 * First code of a fiber: rbx = the fiber, r12 = its first function, rax = the value. Its caller is the frame that the
 * switch left on the stack of the fiber's parent, two pointers away: *(*(rbx + WF_FIBER_PARENT) + WF_FIBER_SP) + 64 is the
 * address of that frame. To a debugger this is a signal's frame, or else it would take the other stack for a broken one;
 * and so that the place of the call is found, as nobody counts one back behind such a frame, it is done here.
 * No exception passes: the personality ends the search.
 */
FUNC(wf_arch_fiber_start)
	.cfi_startproc
	.cfi_signal_frame
	.cfi_personality 0x1b, wf_arch_fiber_personality
	/* the frame's address: breg3 PARENT, deref, plus_uconst SP, deref, plus_uconst 64 */
	.cfi_escape 0x0f, 8, 0x73, WF_FIBER_PARENT, 0x06, 0x23, WF_FIBER_SP, 0x06, 0x23, 64
	/* rip: from that const1u 8, minus, deref, lit1, minus */
	.cfi_escape 0x16, 16, 6, 0x08, 8, 0x1c, 0x06, 0x31, 0x1c
	.cfi_offset %rbp, -16
	.cfi_offset %r15, -24
	.cfi_offset %r14, -32
	.cfi_offset %r13, -40
	.cfi_offset %r12, -48
	.cfi_offset %rbx, -56
	movq	%rbx, %rdi
	movq	%rax, %rsi
	call	*%r12
	ud2
	.cfi_endproc
END_FUNC(wf_arch_fiber_start)

NO_EXEC_STACK
