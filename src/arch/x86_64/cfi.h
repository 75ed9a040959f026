// SPDX-License-Identifier: Apache-2.0
/*
 * For assembly files: pushes that the call frame information follows, and the registers that a C function keeps.
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

/* clang-format on */
#endif

#endif
