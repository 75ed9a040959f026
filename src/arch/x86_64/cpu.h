// SPDX-License-Identifier: Apache-2.0
/*
 * Small inline pieces of x86-64: pause, cycle counter, base registers, raw system calls.
 *
 * Nothing here touches errno, TLS or vector registers.
 */
#ifndef WF_ARCH_X86_64_CPU_H
#define WF_ARCH_X86_64_CPU_H

#include "arch/x86_64/offsets.h"
#include "base/base.h"

WF_INLINE void wf_cpu_pause(void)
{
	__asm__ volatile("pause" ::: "memory");
}

WF_INLINE uint64_t wf_cpu_cycles(void)
{
	uint32_t lo, hi;

	__asm__ volatile("rdtsc" : "=a"(lo), "=d"(hi));
	return (uint64_t)hi << 32 | lo;
}

/* One instruction. */
WF_INLINE uint64_t wf_cpu_claim(uint64_t *count)
{
	uint64_t one = 1;

	__asm__ volatile("xaddq %0, %1" : "+r"(one), "+m"(*count)::"memory");
	return one;
}

WF_INLINE uintptr_t wf_cpu_tls(void)
{
	uintptr_t v;

	__asm__ volatile("rdfsbase %0" : "=r"(v));
	return v;
}

WF_INLINE void wf_cpu_set_tls(uintptr_t v)
{
	__asm__ volatile("wrfsbase %0" ::"r"(v) : "memory");
}

WF_INLINE uintptr_t wf_cpu_base(void)
{
	uintptr_t v;

	__asm__ volatile("rdgsbase %0" : "=r"(v));
	return v;
}

/* The word at offset from the GS base, which must be set: a plain load, where rdgsbase takes seven cycles. */
#define wf_cpu_self_word(offset)                                                                   \
	({                                                                                         \
		uintptr_t word_;                                                                   \
		__asm__ volatile("movq %%gs:%c1, %0" : "=r"(word_) : "i"(offset));                 \
		word_;                                                                             \
	})

WF_INLINE void wf_cpu_set_base(uintptr_t v)
{
	__asm__ volatile("wrgsbase %0" ::"r"(v) : "memory");
}

WF_INLINE long wf_syscall6(long nr, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "0"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return ret;
}

WF_INLINE uint64_t wf_cpu_ask_valgrind(const volatile uint64_t args[6])
{
	uint64_t answer = 0;

	__asm__ volatile("rolq $3, %%rdi; rolq $13, %%rdi; rolq $61, %%rdi; rolq $51, %%rdi\n\t"
			 "xchgq %%rbx, %%rbx"
			 : "+d"(answer)
			 : "a"(args)
			 : "cc", "memory", "rdi");
	return answer;
}

/* A build with -Dpoison=true destroys vector registers at each exit of the gate, with AVX-512 32 of 512 bits. */
#ifdef WF_POISON
extern uint32_t wf_arch_poison_wide;
WF_INLINE void wf_cpu_poison(void)
{
	__builtin_cpu_init(); /* a constructor runs before libgcc's own may have */
	wf_arch_poison_wide = __builtin_cpu_supports("avx512f") != 0;
}
#else
/* Asking the processor takes as long as all the rest of the start where a hypervisor answers. */
WF_INLINE void wf_cpu_poison(void)
{
}
#endif

#endif
