// SPDX-License-Identifier: Apache-2.0
/* The C side of arch.h for AArch64, as far as it goes: what native mode needs. */
#include "arch/arch.h"
#include "arch/aarch64/cpu.h"
#include "base/die.h"

uint32_t wf_arch_gate_on;

void wf_arch_get_fp_modes(uint32_t out[2])
{
	uint64_t fpcr;

	__asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
	out[0] = (uint32_t)fpcr;
	out[1] = 0;
}

void wf_arch_set_fp_modes(const uint32_t modes[2])
{
	__asm__ volatile("msr fpcr, %0" ::"r"((uint64_t)modes[0]));
}

uintptr_t wf_arch_get_tls(void)
{
	return wf_cpu_tls();
}

/* --- asked for by a thread of weft's, which none is --- */

#define NOBODY() wf_die("a thread of weft's, where none can be", __FILE__, __LINE__)

void wf_arch_set_self(struct wf_kthread *k)
{
	(void)k;
	NOBODY();
}

uintptr_t wf_arch_get_base(void)
{
	NOBODY();
}

void wf_arch_set_base(uintptr_t base)
{
	(void)base;
	NOBODY();
}

/* By whoever catches faults, and that is nobody. */
long wf_arch_copy(void *dst, const void *src, size_t n)
{
	(void)dst;
	(void)src;
	(void)n;
	NOBODY();
}
