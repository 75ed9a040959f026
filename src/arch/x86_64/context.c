// SPDX-License-Identifier: Apache-2.0
/* The C side of arch.h for x86-64: first frames, base registers, kernel thread start. */
#include "arch/arch.h"
#include "arch/x86_64/cpu.h"
#include "arch/x86_64/frame.h"
#include "arch/x86_64/saved.h"

#include <asm/unistd.h>
#include <elf.h>
#include <linux/sched.h>

#define HWCAP2_FSGSBASE 2u
#define MXCSR_DEFAULT 0x1f80u
#define X87CW_DEFAULT 0x37fu

uint32_t wf_arch_gate_on;

void wf_arch_context_start(void);
void wf_arch_resume_start(void);
long wf_arch_spawn_raw(unsigned long flags, void *stack_top, int *tid);

void *wf_arch_make_context(void *top, void (*entry)(void *), void *arg)
{
	struct wf_switch_frame *f = (void *)(WF_ALIGN_DOWN((uintptr_t)top, 16ul) - sizeof(*f));

	*f = (struct wf_switch_frame){
		.mxcsr = MXCSR_DEFAULT,
		.x87cw = X87CW_DEFAULT,
		.rbx = (uint64_t)entry,
		.r12 = (uint64_t)arg,
		.rip = wf_arch_context_start,
	};
	return f;
}

/* The words above a switch frame of wf_arch_make_resume(). */
struct resume_frame {
	struct wf_switch_frame frame;
	struct wf_ucontext *uc;
	uint64_t unused; /* the stack is aligned at a call */
};

_Static_assert(offsetof(struct resume_frame, uc) == WF_RESUME_UC,
	       "readers from outside rely on it");

void *wf_arch_make_resume(void *top, void (*entry)(void *), void *arg, struct wf_ucontext *uc)
{
	struct resume_frame *f = (void *)(WF_ALIGN_DOWN((uintptr_t)top, 16ul) - sizeof(*f));

	*f = (struct resume_frame){
		.frame = { .mxcsr = MXCSR_DEFAULT,
			   .x87cw = X87CW_DEFAULT,
			   .rbx = (uint64_t)entry,
			   .r12 = (uint64_t)arg,
			   .rip = wf_arch_resume_start },
		.uc = uc,
	};
	return f;
}

void wf_arch_get_fp_modes(uint32_t out[2])
{
	uint16_t x87cw;

	__asm__ volatile("stmxcsr %0" : "=m"(out[0]));
	__asm__ volatile("fnstcw %0" : "=m"(x87cw));
	out[1] = x87cw;
}

void wf_arch_set_fp_modes(const uint32_t modes[2])
{
	const uint16_t x87cw = (uint16_t)modes[1];

	__asm__ volatile("ldmxcsr %0" ::"m"(modes[0]));
	__asm__ volatile("fldcw %0" ::"m"(x87cw));
}

uintptr_t wf_arch_get_tls(void)
{
	return wf_cpu_tls();
}

void wf_arch_set_tls(uintptr_t tls)
{
	wf_cpu_set_tls(tls);
}

void wf_arch_set_self(struct wf_kthread *k)
{
	wf_cpu_set_base((uintptr_t)k);
}

uintptr_t wf_arch_get_base(void)
{
	return wf_cpu_base();
}

void wf_arch_set_base(uintptr_t base)
{
	wf_cpu_set_base(base);
}

/* wf_arch_spawn_raw() takes this from a new stack. */
static void *first_frame(void *stack_top, void (*fn)(void *), void *arg)
{
	void **sp = (void **)WF_ALIGN_DOWN((uintptr_t)stack_top, 16ul) - 2;

	sp[0] = (void *)fn;
	sp[1] = arg;
	return sp;
}

long wf_arch_spawn_kthread(void *stack_top, void (*fn)(void *), void *arg, int *out_tid)
{
	/* The thread pointer stays the creator's until the first switch: a worker context uses no TLS. */
	const unsigned long flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND |
				    CLONE_THREAD | CLONE_SYSVSEM | CLONE_PARENT_SETTID |
				    CLONE_CHILD_CLEARTID;

	return wf_arch_spawn_raw(flags, first_frame(stack_top, fn, arg), out_tid);
}

struct begin {
	void (*fn)(void *);
	void *arg;
};

static void begin_process(void *arg)
{
	struct begin begin = *(struct begin *)arg;

	wf_arch_set_self(NULL);
	begin.fn(begin.arg);
}

long wf_arch_spawn_process(void *stack_top, void (*fn)(void *), void *arg, int *out_pid)
{
	const unsigned long flags = CLONE_VM | CLONE_UNTRACED | CLONE_PARENT_SETTID;
	struct begin *begin = (void *)(WF_ALIGN_DOWN((uintptr_t)stack_top, 16ul) - sizeof(*begin));

	*begin = (struct begin){ fn, arg };
	return wf_arch_spawn_raw(flags, first_frame(begin, begin_process, begin), out_pid);
}
