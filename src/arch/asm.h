// SPDX-License-Identifier: Apache-2.0
/*
 * Macros for assembly files: function borders and the non-executable-stack note.
 */
#ifndef WF_ARCH_ASM_H
#define WF_ARCH_ASM_H

/* These expand to assembly, not to C. */
/* clang-format off */
#define FUNC(name)                                                                               \
	.globl name;                                                                             \
	.hidden name;                                                                            \
	.type name, @function;                                                                   \
	.balign 16;                                                                              \
	name:

#define END_FUNC(name) .size name, . - name

#define LABEL(name)                                                                              \
	.globl name;                                                                             \
	.hidden name;                                                                            \
	name:

#define NO_EXEC_STACK .section .note.GNU-stack, "", @progbits
/* clang-format on */

#endif
