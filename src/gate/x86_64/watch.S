// SPDX-License-Identifier: Apache-2.0
/*
 * The dynamic loader calls this instead of its empty _dl_debug_state(): see modules.c.
 *
 * It leaves through the gate, by a call that costs nothing. So a signal or the end of a slice that came
 * meanwhile, and found us in the runtime's own text, is seen now.
 */
#include "arch/asm.h"
#include "arch/x86_64/offsets.h"

#define NR_GETTID 186

	.text

FUNC(wf_gate_watch)
	.cfi_startproc
	subq	$8, %rsp
	.cfi_adjust_cfa_offset 8
	call	wf_gate_changed
	movl	$NR_GETTID, %eax
	leaq	1f(%rip), %r11
	movq	%r11, %rcx
	leaq	-WF_RED_ZONE(%rsp), %rsp
	jmp	wf_arch_gate_entry
1:	addq	$8, %rsp
	.cfi_adjust_cfa_offset -8
	ret
	.cfi_endproc
END_FUNC(wf_gate_watch)

NO_EXEC_STACK
