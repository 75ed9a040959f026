// SPDX-License-Identifier: Apache-2.0
/*
 * The kernel's signal frame on x86-64: reading, copying, building.
 *
 * Layout from low to high addresses: return address, struct ucontext, siginfo (128 bytes), then at a
 * 64-byte boundary the extended FPU state, to which the ucontext points.
 */
#ifndef WF_ARCH_X86_64_SIGFRAME_H
#define WF_ARCH_X86_64_SIGFRAME_H

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

/* Bytes of the FPU state that uc points to (0 when there is none). */
size_t wf_sigframe_fp_bytes(const struct wf_ucontext *uc);

/* Room that wf_sigframe_save() needs for the largest frame on this machine. */
size_t wf_sigframe_save_bytes(size_t min_sigstack);

/*
 * Copy the context uc into area so that the kernel can return to it from there; area is 64-byte aligned.
 * Returns the copied ucontext.
 */
struct wf_ucontext *wf_sigframe_save(void *area, const struct wf_ucontext *uc);

/*
 * Lay out a frame below sp (the red zone already taken off): sets *out_fp where fp_bytes of FPU state go.
 * The frame's address satisfies the ABI's alignment at a function entry.
 */
struct wf_sigframe *wf_sigframe_place(uintptr_t sp, size_t fp_bytes, void **out_fp);

/* A fresh FPU control state in uc's FPU area, as the kernel gives a handler. */
void wf_sigframe_reset_fp(struct wf_ucontext *uc);

/* Edit uc, whose state frame has taken down, so that resuming it enters the frame's handler. */
void wf_sigframe_enter(struct wf_ucontext *uc, struct wf_sigframe *frame, void *handler, int sig);

/* Store the current x87/SSE state as a legacy frame of 512 bytes at fp (64-byte aligned). */
#define WF_LEGACY_FP_BYTES 512
void wf_sigframe_store_legacy_fp(void *fp);

/* The same with all that the kernel saves by itself, so not AMX: its bytes, and to store it. */
size_t wf_sigframe_whole_fp_bytes(void);
void wf_sigframe_store_whole_fp(void *fp);

#endif
