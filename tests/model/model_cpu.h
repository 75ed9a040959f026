// SPDX-License-Identifier: Apache-2.0
/*
 * arch/x86_64/cpu.h for the model checker, included before everything in the core's files: the virtual CPU's
 * own base register, clock and system calls; and the functions of arch.h that go past them.
 */
#ifndef WF_TESTS_MODEL_CPU_H
#define WF_TESTS_MODEL_CPU_H

#define WF_ARCH_X86_64_CPU_H /* the real one is not wanted */

#include "arch/x86_64/offsets.h"
#include "base/base.h"

extern void *model_gs; /* of the virtual CPU that runs */

void model_pause(void);
uint64_t model_cycles(void);
long model_syscall(long nr, long a, long b, long c, long d);

/* In search() it is a delay, which means nothing here. */
#define wf_cpu_pause() (__builtin_strcmp(__func__, "search") ? model_pause() : (void)0)

WF_INLINE uint64_t wf_cpu_cycles(void)
{
	return model_cycles();
}

/* Seen by others at once, where the real one may take a while as any store does. */
#define wf_cpu_claim(count) wf_fetch_add_relaxed((count), 1u)

WF_INLINE uintptr_t wf_cpu_base(void)
{
	return (uintptr_t)model_gs;
}

/* A waker of the model that is no kernel thread stands for the door: one without worker and thread. */
extern char model_stranger[];
#define wf_cpu_self_word(offset)                                                                   \
	(model_gs   ? *(uintptr_t *)((char *)model_gs + (offset))                                  \
	 : (offset) ? 0                                                                            \
		    : (uintptr_t)model_stranger)

WF_INLINE long wf_syscall6(long nr, long a, long b, long c, long d, long e, long f)
{
	return model_syscall(nr, a, b, c, d);
}

#define wf_cpu_tls() model_arch_get_tls()
#define wf_arch_switch model_arch_switch
#define wf_arch_switch_last model_arch_switch_last
#define wf_arch_make_context model_arch_make_context
#define wf_arch_make_resume model_arch_make_resume
#define wf_arch_sigreturn model_arch_sigreturn
#define wf_arch_sigreturn_check model_arch_sigreturn_check
#define wf_arch_sigreturn_end model_arch_sigreturn_end
#define wf_arch_get_base model_arch_get_base
#define wf_arch_set_base model_arch_set_base
#define wf_arch_set_self model_arch_set_self
#define wf_arch_set_tls model_arch_set_tls
#define wf_arch_get_tls model_arch_get_tls
#define wf_arch_spawn_kthread model_arch_spawn_kthread

#endif
