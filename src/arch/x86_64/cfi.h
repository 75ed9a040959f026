// SPDX-License-Identifier: Apache-2.0
/*
 * For assembly files: pushes that the call frame information follows, the registers that a C function keeps, and
 * the way from the runtime's code to a context that a signal frame holds.
 */
#ifndef WF_ARCH_X86_64_CFI_H
#define WF_ARCH_X86_64_CFI_H

#ifdef __ASSEMBLER__
/* clang-format off */

	/* The unwinder only counts it. */
	.macro PUSH reg
	pushq	\reg
	.cfi_adjust_cfa_offset 8
	.endm

	/* The unwinder finds the caller's register here. */
	.macro PUSH_SAVED reg
	PUSH	\reg
	.cfi_rel_offset \reg, 0
	.endm

	/* All registers that a function keeps hold the caller's values again. */
	.macro CFI_KEPT_RESTORED
	.irp reg,%r15,%r14,%r13,%r12,%rbp,%rbx
	.cfi_restore \reg
	.endr
	.endm

	/*
	 * The caller is the context that a ucontext holds, crossed like a signal frame of the kernel's. at is a
	 * DWARF expression of len bytes that lacks the last operand, an offset into the ucontext: 40 + 8 * n is
	 * gregs[n], in two bytes, low part first, of seven bits each.
	 */
	.macro CFI_CONTEXT_REG dwarf, lo, hi, len, at:vararg
	.cfi_escape 0x10, \dwarf, \len + 2, \at, \lo, \hi
	.endm

	.macro CFI_CONTEXT len, at:vararg
	.cfi_signal_frame
	.cfi_escape 0x0f, \len + 3, \at, 0xa0, 0x01, 0x06	/* the frame's address: what rsp was */
	CFI_CONTEXT_REG 8, 0xa8, 0x00, \len, \at
	CFI_CONTEXT_REG 9, 0xb0, 0x00, \len, \at
	CFI_CONTEXT_REG 10, 0xb8, 0x00, \len, \at
	CFI_CONTEXT_REG 11, 0xc0, 0x00, \len, \at
	CFI_CONTEXT_REG 12, 0xc8, 0x00, \len, \at
	CFI_CONTEXT_REG 13, 0xd0, 0x00, \len, \at
	CFI_CONTEXT_REG 14, 0xd8, 0x00, \len, \at
	CFI_CONTEXT_REG 15, 0xe0, 0x00, \len, \at
	CFI_CONTEXT_REG 5, 0xe8, 0x00, \len, \at	/* rdi */
	CFI_CONTEXT_REG 4, 0xf0, 0x00, \len, \at	/* rsi */
	CFI_CONTEXT_REG 6, 0xf8, 0x00, \len, \at	/* rbp */
	CFI_CONTEXT_REG 3, 0x80, 0x01, \len, \at	/* rbx */
	CFI_CONTEXT_REG 1, 0x88, 0x01, \len, \at	/* rdx */
	CFI_CONTEXT_REG 0, 0x90, 0x01, \len, \at	/* rax */
	CFI_CONTEXT_REG 2, 0x98, 0x01, \len, \at	/* rcx */
	CFI_CONTEXT_REG 16, 0xa8, 0x01, \len, \at	/* rip */
	.endm

	.macro CFI_CONTEXT_AT_RSP
	CFI_CONTEXT 1, 0x77
	.endm

	.macro CFI_CONTEXT_AT_RDI
	CFI_CONTEXT 1, 0x75
	.endm

	/* rsp points to the ucontext's address */
	.macro CFI_CONTEXT_FROM_RSP
	CFI_CONTEXT 4, 0x77, 0x00, 0x06, 0x23
	.endm

/* clang-format on */
#endif

#endif
