// SPDX-License-Identifier: Apache-2.0
/*
 * Small inline pieces of AArch64: waiting in a loop, the counter, the thread pointer, raw system calls.
 *
 * There is no second base register, and no kernel thread is weft's: what asks for one is answered so.
 */
#ifndef WF_ARCH_AARCH64_CPU_H
#define WF_ARCH_AARCH64_CPU_H

#include "arch/aarch64/offsets.h"
#include "base/base.h"

/* `yield` does nothing on most processors; this takes about as long as `pause` does on others. */
WF_INLINE void wf_cpu_pause(void)
{
	__asm__ volatile("isb" ::: "memory");
}

WF_INLINE uint64_t wf_cpu_cycles(void)
{
	uint64_t v;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(v));
	return v;
}

WF_INLINE uint64_t wf_cpu_claim(uint64_t *count)
{
	return __atomic_fetch_add(count, 1, __ATOMIC_RELAXED);
}

WF_INLINE uintptr_t wf_cpu_tls(void)
{
	uintptr_t v;

	__asm__ volatile("mrs %0, tpidr_el0" : "=r"(v));
	return v;
}

WF_INLINE uintptr_t wf_cpu_base(void)
{
	return 0;
}

/* Nobody is on a kernel thread of weft's, whose word it would be. */
#define wf_cpu_self_word(offset) (*(uintptr_t *)(wf_cpu_base() + (offset)))

WF_INLINE long wf_syscall6(long nr, long a, long b, long c, long d, long e, long f)
{
	register long x8 __asm__("x8") = nr;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;

	__asm__ volatile("svc #0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
			 : "memory", "cc");
	return x0;
}

/* For valgrind; see arch.h. */
WF_INLINE uint64_t wf_cpu_ask_valgrind(const volatile uint64_t args[6])
{
	register uint64_t answer __asm__("x3") = 0;
	register const volatile uint64_t *at __asm__("x4") = args;

	__asm__ volatile(
		"ror x12, x12, #3; ror x12, x12, #13; ror x12, x12, #51; ror x12, x12, #61\n\t"
		"orr x10, x10, x10"
		: "+r"(answer)
		: "r"(at)
		: "cc", "memory");
	return answer;
}

WF_INLINE void wf_cpu_poison(void)
{
}

#endif
