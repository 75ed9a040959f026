// SPDX-License-Identifier: Apache-2.0
/*
 * Where the registers of a thread lie while it is on no CPU. obs/inspect.c tells readers outside of the process.
 */
#ifndef WF_ARCH_X86_64_SAVED_H
#define WF_ARCH_X86_64_SAVED_H

#include "arch/x86_64/sigframe.h"

/* wf_arch_switch() pops this; see switch.S. */
struct wf_switch_frame {
	uint32_t mxcsr;
	uint32_t x87cw;
	uint64_t rbx, r12, r13, r14, r15, rbp;
	void (*rip)(void);
};

_Static_assert(sizeof(struct wf_switch_frame) == 64, "switch.S relies on it");

#define WF_BYTES_OF_CALL 7

WF_INLINE bool wf_arch_is_call(const uint8_t *before)
{
	const uint8_t *end = before + WF_BYTES_OF_CALL;

	/* call rel32; or through a register or memory, which takes 2, 3, 6 or 7 bytes */
	return end[-5] == 0xe8 || (end[-2] == 0xff && (end[-1] & 0x38) == 0x10) ||
	       (end[-3] == 0xff && (end[-2] & 0x38) == 0x10) ||
	       (end[-6] == 0xff && (end[-5] & 0x38) == 0x10) ||
	       (end[-7] == 0xff && (end[-6] & 0x38) == 0x10);
}

/* The rows of inspect.c: a register of a switch frame, and one of a preempted thread's context. */
#define WF_SAVED_BY_SWITCH(X) X(rbx) X(r12) X(r13) X(r14) X(r15) X(rbp) X(rip)
#define WF_SAVED_BY_SIGNAL(X)                                                                      \
	X(r8, R8)                                                                                  \
	X(r9, R9)                                                                                  \
	X(r10, R10)                                                                                \
	X(r11, R11)                                                                                \
	X(r12, R12)                                                                                \
	X(r13, R13)                                                                                \
	X(r14, R14)                                                                                \
	X(r15, R15)                                                                                \
	X(rdi, RDI)                                                                                \
	X(rsi, RSI)                                                                                \
	X(rbp, RBP)                                                                                \
	X(rbx, RBX)                                                                                \
	X(rdx, RDX)                                                                                \
	X(rax, RAX)                                                                                \
	X(rcx, RCX)                                                                                \
	X(rsp, RSP)                                                                                \
	X(rip, RIP)

#endif
