// SPDX-License-Identifier: Apache-2.0
/*
 * The frame that the gate entry builds on the caller's stack, below the red zone.
 *
 *   caller's rsp at the syscall instruction
 *   [-128 .. -1]    the caller's red zone, untouched
 *   [-256 .. -129]  struct wf_frame
 *
 * The word next lies at rsp-136: the unwinder is told that it is the return address, so a hook looks as if
 * it had been called from the system call instruction itself, and the caller's own tables apply.
 */
#ifndef WF_ARCH_X86_64_FRAME_H
#define WF_ARCH_X86_64_FRAME_H

#include "arch/x86_64/offsets.h"
#include "base/base.h"

struct wf_frame {
	uint64_t r15, r14, r13, r12, rbp, rbx;
	uint64_t r10, r9, r8;
	uint64_t rax; /* result; before, of a caller that is not weft's: its GS base */
	uint64_t rdx, rsi, rdi;
	uint64_t nr;     /* system call number at entry */
	uint64_t resume; /* trampoline address to leave to: rcx */
	uint64_t next;   /* address behind the system call instruction: r11 */
};

_Static_assert(offsetof(struct wf_frame, r10) == WF_FRAME_R10, "frame layout");
_Static_assert(offsetof(struct wf_frame, rax) == WF_FRAME_RAX, "frame layout");
_Static_assert(offsetof(struct wf_frame, resume) == WF_FRAME_RESUME, "frame layout");
_Static_assert(sizeof(struct wf_frame) == WF_FRAME_BYTES, "frame layout");

/* Arguments by position, as the kernel's ABI orders them. */
#define WF_ARG0(f) ((f)->rdi)
#define WF_ARG1(f) ((f)->rsi)
#define WF_ARG2(f) ((f)->rdx)
#define WF_ARG3(f) ((f)->r10)
#define WF_ARG4(f) ((f)->r8)
#define WF_ARG5(f) ((f)->r9)

/* The stack pointer of the interrupted call. */
WF_INLINE uint64_t wf_frame_sp(const struct wf_frame *f)
{
	return (uint64_t)f + WF_FRAME_BYTES + WF_RED_ZONE;
}

#define WF_SYSCALL_BYTES 2

WF_INLINE uintptr_t wf_frame_site(const struct wf_frame *f)
{
	return f->next - WF_SYSCALL_BYTES;
}

WF_INLINE long wf_frame_result(const struct wf_frame *f)
{
	return (long)f->rax;
}

WF_INLINE void wf_frame_answer(struct wf_frame *f, long result)
{
	f->rax = (uint64_t)result;
}

WF_INLINE void wf_frame_untouch(struct wf_frame *f)
{
	f->rax = f->nr;
}

WF_INLINE uintptr_t wf_frame_stranger_base(const struct wf_frame *f)
{
	return f->rax;
}

/* The frame that belongs to a stack pointer. */
WF_INLINE struct wf_frame *wf_frame_at(uint64_t sp)
{
	return (struct wf_frame *)(sp - WF_FRAME_BYTES - WF_RED_ZONE);
}

#endif
