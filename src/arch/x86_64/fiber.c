// SPDX-License-Identifier: Apache-2.0
/* The first frame of a fiber; see fiber.S. */
#include "arch/arch.h"
#include "arch/x86_64/saved.h"

void wf_arch_fiber_start(void);

void *wf_arch_make_fiber(void *top, void (*entry)(void *fiber, void *value), void *fiber)
{
	struct wf_switch_frame *f = (void *)(WF_ALIGN_DOWN((uintptr_t)top, 16ul) - sizeof(*f));
	uint32_t mxcsr;
	uint16_t x87cw;

	__asm__("stmxcsr %0" : "=m"(mxcsr));
	__asm__("fnstcw %0" : "=m"(x87cw));
	*f = (struct wf_switch_frame){
		.mxcsr = mxcsr,
		.x87cw = x87cw,
		.rbx = (uint64_t)fiber,
		.r12 = (uint64_t)entry,
		.rip = wf_arch_fiber_start,
	};
	return f;
}
