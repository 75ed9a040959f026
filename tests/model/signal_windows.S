// SPDX-License-Identifier: Apache-2.0
/* The places of the gate that a kick must not pass with the attention word set, by name and order only. */
#include "arch/asm.h"

	.text
	.macro WINDOW begin, end
LABEL(\begin)
	.skip	16
LABEL(\end)
	nop
	.endm

	WINDOW	wf_arch_gate_exit_begin, wf_arch_gate_exit_last
LABEL(wf_arch_gate_exit_end)
	WINDOW	wf_arch_raw_call_begin, wf_arch_raw_call_end
LABEL(wf_arch_raw_call_interrupted)
	nop
LABEL(wf_arch_raw_call_not_made)
	nop
LABEL(wf_arch_restorer_check)
	nop
	WINDOW	wf_arch_restorer_tail, wf_arch_restorer_end
	WINDOW	wf_arch_enter_check, wf_arch_enter_end
	WINDOW	model_arch_sigreturn_check, model_arch_sigreturn_end

	/* No access to the program's memory faults here. */
LABEL(wf_arch_copy_begin)
LABEL(wf_arch_copy_end)
LABEL(wf_arch_copy_fault)
LABEL(wf_arch_load32_begin)
LABEL(wf_arch_load32_end)
LABEL(wf_arch_cas32_begin)
LABEL(wf_arch_cas32_end)

NO_EXEC_STACK
