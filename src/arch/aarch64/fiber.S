/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Going from one stack of a thread to another; see native/fiber.c.
 *
 * It is the program's code, and a handler may run at each instruction. A handler's frame lies below the stack pointer, and that
 * is set by one instruction: before it all that counts of the old stack lies above, and behind it all that counts of the
 * new one. The frame is the same on both stacks (saved.h has the picture), and so whoever unwinds is right at each instruction.
 *
 * It ends in a jump, since a resume and a yield are called from different places: a return would never be predicted.
 */
#include "arch/asm.h"
#include "arch/aarch64/offsets.h"

	/* The frame's address is the stack pointer's and WF_SWITCH_BYTES; x30 and x29 are uppermost. */
	.macro CFI_SAVED
	.cfi_offset x30, -8
	.cfi_offset x29, -16
	.cfi_offset x28, -24
	.cfi_offset x27, -32
	.cfi_offset x26, -40
	.cfi_offset x25, -48
	.cfi_offset x24, -56
	.cfi_offset x23, -64
	.cfi_offset x22, -72
	.cfi_offset x21, -80
	.cfi_offset x20, -88
	.cfi_offset x19, -96
	.cfi_offset d15, -104
	.cfi_offset d14, -112
	.cfi_offset d13, -120
	.cfi_offset d12, -128
	.cfi_offset d11, -136
	.cfi_offset d10, -144
	.cfi_offset d9, -152
	.cfi_offset d8, -160
	.endm

	/* A store or load of two neighbours. */
	.macro PAIR op, a, b, at
	\op	\a, \b, [sp, #\at]
	.endm

	.macro ALL op
	PAIR \op, d8, d9, WF_SWITCH_D8
	PAIR \op, d10, d11, WF_SWITCH_D8 + 16
	PAIR \op, d12, d13, WF_SWITCH_D8 + 32
	PAIR \op, d14, d15, WF_SWITCH_D8 + 48
	PAIR \op, x19, x20, WF_SWITCH_X19
	PAIR \op, x21, x22, WF_SWITCH_X19 + 16
	PAIR \op, x23, x24, WF_SWITCH_X19 + 32
	PAIR \op, x25, x26, WF_SWITCH_X19 + 48
	PAIR \op, x27, x28, WF_SWITCH_X19 + 64
	PAIR \op, x29, x30, WF_SWITCH_X29
	.endm

	.section weft_face, "ax", @progbits

/* x0: where the stack pointer goes, x1: the other one, x2: the value */
FUNC(wf_arch_fiber_switch)
	.cfi_startproc
	sub	sp, sp, #WF_SWITCH_BYTES
	.cfi_def_cfa_offset WF_SWITCH_BYTES
	ALL	stp
	mrs	x9, fpcr
	str	x9, [sp, #WF_SWITCH_FPCR]
	CFI_SAVED
	mov	x10, sp
	str	x10, [x0]
	mov	x0, x2
	mov	sp, x1
	/* Nearly always equal, and to set it takes longer than all the rest. */
	ldr	x10, [sp, #WF_SWITCH_FPCR]
	cmp	x9, x10
	b.eq	1f
	msr	fpcr, x10
	/* A register that is loaded holds what the frame does: until the stack pointer moves both are right. */
1:	ALL	ldp
	.irp	reg, x30, x29, x28, x27, x26, x25, x24, x23, x22, x21, x20, x19, d15, d14, d13, d12, d11, d10, d9, d8
	.cfi_restore \reg
	.endr
	add	sp, sp, #WF_SWITCH_BYTES
	.cfi_def_cfa_offset 0
	br	x30
	.cfi_endproc
END_FUNC(wf_arch_fiber_switch)

/*
 * First code of a fiber: x19 = the fiber, x20 = its first function, x0 = the value. Its caller is the frame that the
 * switch left on the stack of the fiber's parent, two pointers away: *(*(x19 + WF_FIBER_PARENT) + WF_FIBER_SP) +
 * WF_SWITCH_BYTES is the address of that frame. To a debugger this is a signal's frame, or else it would take the other stack
 * for a broken one; and so that the place of the call is found, as nobody counts one back behind such a frame, it is done here.
 * No exception passes: the personality ends the search.
 */
FUNC(wf_arch_fiber_start)
	.cfi_startproc
	.cfi_signal_frame
	.cfi_personality 0x1b, wf_arch_fiber_personality
	/* the frame's address: breg19 PARENT, deref, plus_uconst SP, deref, plus_uconst 176, which takes two bytes */
	.cfi_escape 0x0f, 9, 0x83, WF_FIBER_PARENT, 0x06, 0x23, WF_FIBER_SP, 0x06, 0x23, (WF_SWITCH_BYTES & 0x7f) | 0x80, WF_SWITCH_BYTES >> 7
	CFI_SAVED
	/* x30: from that const1u 8, minus, deref, lit4, minus */
	.cfi_escape 0x16, 30, 6, 0x08, 8, 0x1c, 0x06, 0x34, 0x1c
	mov	x1, x0
	mov	x0, x19
	blr	x20
	brk	#1
	.cfi_endproc
END_FUNC(wf_arch_fiber_start)

NO_EXEC_STACK
