// SPDX-License-Identifier: Apache-2.0
/*
 * The kernel's signal frame on x86-64: reading, copying, building.
 *
 * Layout from low to high addresses: return address, struct ucontext, siginfo (128 bytes), then at a
 * 64-byte boundary the extended FPU state, to which the ucontext points.
 */
#ifndef WF_ARCH_X86_64_SIGFRAME_H
#define WF_ARCH_X86_64_SIGFRAME_H

#include "arch/arch.h"
#include "base/base.h"

enum {
	WF_UC_R8,
	WF_UC_R9,
	WF_UC_R10,
	WF_UC_R11,
	WF_UC_R12,
	WF_UC_R13,
	WF_UC_R14,
	WF_UC_R15,
	WF_UC_RDI,
	WF_UC_RSI,
	WF_UC_RBP,
	WF_UC_RBX,
	WF_UC_RDX,
	WF_UC_RAX,
	WF_UC_RCX,
	WF_UC_RSP,
	WF_UC_RIP,
	WF_UC_EFL,
	WF_UC_CSGSFS,
	WF_UC_ERR,
	WF_UC_TRAPNO,
	WF_UC_OLDMASK,
	WF_UC_CR2,
	WF_UC_NR
};

struct wf_stack_t {
	void *sp;
	int flags;
	size_t size;
};

struct wf_ucontext {
	unsigned long flags;
	void *link;
	struct wf_stack_t stack;
	uint64_t reg[WF_UC_NR];
	void *fpstate;
	uint64_t reserved[8];
	uint64_t sigmask;
};

_Static_assert(offsetof(struct wf_ucontext, reg) == 40, "kernel layout");
_Static_assert(offsetof(struct wf_ucontext, fpstate) == 224, "kernel layout");
_Static_assert(offsetof(struct wf_ucontext, sigmask) == 296, "kernel layout");

#define WF_SIGINFO_BYTES 128

struct wf_siginfo {
	int signo, errno_, code, pad;
	union {
		struct {
			int pid;
			unsigned uid;
			uint64_t value;
		} kill;
		struct {
			int timer_id, overrun;
			uint64_t value;
		} timer;
		struct {
			uint64_t addr;
		} fault;
		uint64_t words[14];
	};
};

_Static_assert(sizeof(struct wf_siginfo) == WF_SIGINFO_BYTES, "kernel layout");

struct wf_sigframe {
	void *restorer;
	struct wf_ucontext uc;
	struct wf_siginfo info;
};

#define WF_LEGACY_FP_BYTES 512

WF_INLINE uintptr_t wf_uc_pc(const struct wf_ucontext *uc)
{
	return uc->reg[WF_UC_RIP];
}

WF_INLINE void wf_uc_set_pc(struct wf_ucontext *uc, uintptr_t pc)
{
	uc->reg[WF_UC_RIP] = pc;
}

WF_INLINE uintptr_t wf_uc_sp(const struct wf_ucontext *uc)
{
	return uc->reg[WF_UC_RSP];
}

WF_INLINE uintptr_t wf_uc_fp(const struct wf_ucontext *uc)
{
	return uc->reg[WF_UC_RBP];
}

WF_INLINE void wf_uc_set_result(struct wf_ucontext *uc, long result)
{
	uc->reg[WF_UC_RAX] = (uint64_t)result;
}

#define WF_TRAP_PAGE_FAULT 14
#define WF_PAGE_FAULT_WRITE 2
#define WF_PAGE_FAULT_FETCH 0x10

WF_INLINE bool wf_uc_is_data_fault(const struct wf_ucontext *uc)
{
	return uc->reg[WF_UC_TRAPNO] == WF_TRAP_PAGE_FAULT &&
	       !(uc->reg[WF_UC_ERR] & WF_PAGE_FAULT_FETCH);
}

WF_INLINE bool wf_uc_is_write_fault(const struct wf_ucontext *uc)
{
	return uc->reg[WF_UC_ERR] & WF_PAGE_FAULT_WRITE;
}

WF_INLINE struct wf_uc_handler wf_uc_handler(const struct wf_ucontext *uc)
{
	return (struct wf_uc_handler){
		.sp = (void *)uc->reg[WF_UC_RSP],
		.handler = (void *)uc->reg[WF_UC_RIP],
		.sig = (long)uc->reg[WF_UC_RDI],
		.info = (void *)uc->reg[WF_UC_RSI],
		.uc = (void *)uc->reg[WF_UC_RDX],
	};
}

/* Six in a line. */
#define WF_UC_SHOWN(X)                                                                             \
	X(rip, RIP)                                                                                \
	X(rsp, RSP)                                                                                \
	X(rbp, RBP)                                                                                \
	X(rax, RAX)                                                                                \
	X(rbx, RBX)                                                                                \
	X(rcx, RCX)                                                                                \
	X(rdx, RDX)                                                                                \
	X(rsi, RSI)                                                                                \
	X(rdi, RDI)                                                                                \
	X(r8, R8)                                                                                  \
	X(r9, R9)                                                                                  \
	X(r10, R10)                                                                                \
	X(r11, R11)                                                                                \
	X(r12, R12)                                                                                \
	X(r13, R13)                                                                                \
	X(r14, R14)                                                                                \
	X(r15, R15)                                                                                \
	X(efl, EFL)

#endif
