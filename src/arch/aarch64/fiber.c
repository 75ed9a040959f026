// SPDX-License-Identifier: Apache-2.0
/* The first frame of a fiber; see fiber.S. */
#include "arch/arch.h"
#include "arch/aarch64/saved.h"

void wf_arch_fiber_start(void);

void *wf_arch_make_fiber(void *top, void (*entry)(void *fiber, void *value), void *fiber)
{
	struct wf_switch_frame *f = (void *)(WF_ALIGN_DOWN((uintptr_t)top, 16ul) - sizeof(*f));
	uint64_t fpcr;

	__asm__("mrs %0, fpcr" : "=r"(fpcr));
	*f = (struct wf_switch_frame){
		.fpcr = fpcr,
		.x = { (uint64_t)fiber, (uint64_t)entry },
		.x30 = wf_arch_fiber_start,
	};
	return f;
}
