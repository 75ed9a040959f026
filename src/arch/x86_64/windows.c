// SPDX-License-Identifier: Apache-2.0
/*
 * Places in the assembly of this folder that a signal handler must know by address; see arch.h.
 *
 * The five windows lie between a last look at the attention word and what must not be done with that set: the real call
 * (gate.S), the gate's exit, the return from a handler and the start of one (handler.S), the return to a preempted
 * context (switch.S).
 */
#include "arch/arch.h"

extern char wf_arch_gate_exit_begin[], wf_arch_gate_exit_last[], wf_arch_gate_exit_end[];
extern char wf_arch_raw_call_begin[], wf_arch_raw_call_end[], wf_arch_raw_call_interrupted[],
	wf_arch_raw_call_not_made[];
extern char wf_arch_enter_check[], wf_arch_enter_end[];
extern char wf_arch_sigreturn_check[], wf_arch_sigreturn_end[];
extern char wf_arch_restorer_check[], wf_arch_restorer_tail[], wf_arch_restorer_end[];
extern char wf_arch_copy_begin[], wf_arch_copy_end[], wf_arch_copy_fault[];
extern char wf_arch_load32_begin[], wf_arch_load32_end[];
extern char wf_arch_cas32_begin[], wf_arch_cas32_end[];

static bool is_in(uintptr_t pc, const char *begin, const char *end)
{
	return pc >= (uintptr_t)begin && pc < (uintptr_t)end;
}

void wf_arch_leave_window(struct wf_ucontext *uc)
{
	uintptr_t pc = wf_uc_pc(uc);

	if (is_in(pc, wf_arch_raw_call_begin, wf_arch_raw_call_end)) {
		/* The instruction writes rcx. */
		wf_uc_set_pc(uc, (uintptr_t)(uc->reg[WF_UC_RCX] ? wf_arch_raw_call_interrupted
								: wf_arch_raw_call_not_made));
	} else if (is_in(pc, wf_arch_gate_exit_begin, wf_arch_gate_exit_end)) {
		if (pc == (uintptr_t)wf_arch_gate_exit_last)
			uc->reg[WF_UC_RSP] -= WF_FRAME_BYTES + WF_RED_ZONE;
		wf_uc_set_pc(uc, (uintptr_t)wf_arch_gate_exit_begin);
	} else if (is_in(pc, wf_arch_restorer_tail, wf_arch_restorer_end)) {
		wf_uc_set_pc(uc, (uintptr_t)wf_arch_restorer_check);
	} else if (is_in(pc, wf_arch_enter_check, wf_arch_enter_end)) {
		wf_uc_set_pc(uc, (uintptr_t)wf_arch_enter_check);
	} else if (is_in(pc, wf_arch_sigreturn_check, wf_arch_sigreturn_end)) {
		wf_uc_set_pc(uc, (uintptr_t)wf_arch_sigreturn_check);
	}
}

bool wf_arch_end_access(struct wf_ucontext *uc)
{
	uintptr_t pc = wf_uc_pc(uc);

	if (!is_in(pc, wf_arch_copy_begin, wf_arch_copy_end) &&
	    !is_in(pc, wf_arch_load32_begin, wf_arch_load32_end) &&
	    !is_in(pc, wf_arch_cas32_begin, wf_arch_cas32_end))
		return false;
	wf_uc_set_pc(uc, (uintptr_t)wf_arch_copy_fault);
	return true;
}

bool wf_arch_is_behind_raw_call(const struct wf_ucontext *uc)
{
	return wf_uc_pc(uc) == (uintptr_t)wf_arch_raw_call_end;
}
