// SPDX-License-Identifier: Apache-2.0
/* The C side of gate.S: how a thread that a clone has made gets out of it. Linked with the gate only. */
#include "arch/arch.h"
#include "arch/x86_64/frame.h"
#include "arch/x86_64/saved.h"

void wf_arch_gate_thread_start(void); /* gate.S */

void *wf_arch_make_gate_context(struct wf_frame *frame)
{
	struct wf_switch_frame *f = (struct wf_switch_frame *)frame - 1;
	uint32_t mxcsr;
	uint16_t x87cw;

	/* A new thread inherits its maker's rounding modes, as clone(2) has it. */
	__asm__("stmxcsr %0" : "=m"(mxcsr));
	__asm__("fnstcw %0" : "=m"(x87cw));
	*f = (struct wf_switch_frame){
		.mxcsr = mxcsr,
		.x87cw = x87cw,
		.rbx = (uint64_t)frame,
		.rip = wf_arch_gate_thread_start,
	};
	return f;
}
