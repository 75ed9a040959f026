// SPDX-License-Identifier: Apache-2.0
/* The kernel's signal frame; see sigframe.h. */
#include "arch/x86_64/sigframe.h"
#include "arch/arch.h"
#include "base/atomic.h"

#define FP_XSTATE_MAGIC1 0x46505853u
#define FP_SW_OFFSET 464 /* struct _fpx_sw_bytes in the fxsave area */
#define FP_ALIGN 64ul
#define RFLAGS_USER 0x202
#define CSGSFS_USER 0x002b000000000033ull
#define UC_FP_XSTATE 0x1
#define UC_FLAGS 0x6 /* UC_SIGCONTEXT_SS | UC_STRICT_RESTORE_SS */

struct fp_sw_bytes {
	uint32_t magic1;
	uint32_t extended_size;
	uint64_t features;
	uint32_t xstate_size;
	uint32_t padding[7];
};

size_t wf_sigframe_fp_bytes(const struct wf_ucontext *uc)
{
	const struct fp_sw_bytes *sw;

	if (!uc->fpstate)
		return 0;
	sw = (const void *)((const char *)uc->fpstate + FP_SW_OFFSET);
	return sw->magic1 == FP_XSTATE_MAGIC1 ? sw->extended_size : WF_LEGACY_FP_BYTES;
}

size_t wf_sigframe_save_bytes(size_t min_sigstack)
{
	return min_sigstack + sizeof(struct wf_sigframe) + 2 * FP_ALIGN;
}

struct wf_ucontext *wf_sigframe_save(void *area, const struct wf_ucontext *uc)
{
	/* rt_sigreturn() finds the ucontext at its stack pointer: keep a word for the popped return address. */
	struct wf_ucontext *to = (void *)((char *)area + FP_ALIGN);
	size_t fp_bytes = wf_sigframe_fp_bytes(uc);

	*to = *uc;
	if (fp_bytes) {
		char *fp = (char *)WF_ALIGN_UP((uintptr_t)(to + 1), FP_ALIGN);

		__builtin_memcpy(fp, uc->fpstate, fp_bytes);
		to->fpstate = fp;
	}
	return to;
}

struct wf_sigframe *wf_sigframe_place(uintptr_t sp, size_t fp_bytes, void **out_fp)
{
	uintptr_t fp = WF_ALIGN_DOWN(sp - fp_bytes, FP_ALIGN);
	uintptr_t frame = fp - sizeof(struct wf_sigframe);

	*out_fp = fp_bytes ? (void *)fp : NULL;
	/* At a function's first instruction rsp + 8 is a multiple of 16. */
	return (struct wf_sigframe *)(WF_ALIGN_DOWN(frame, 16ul) - 8);
}

void wf_sigframe_reset_fp(struct wf_ucontext *uc)
{
	char *fp = uc->fpstate;

	if (!fp)
		return;
	*(uint16_t *)fp = 0x37f;
	*(uint32_t *)(fp + 24) = 0x1f80;
}

void wf_sigframe_enter(struct wf_ucontext *uc, struct wf_sigframe *frame, void *handler, int sig)
{
	uc->reg[WF_UC_RIP] = (uint64_t)handler;
	uc->reg[WF_UC_RSP] = (uint64_t)frame;
	uc->reg[WF_UC_RDI] = (uint64_t)sig;
	uc->reg[WF_UC_RSI] = (uint64_t)&frame->info;
	uc->reg[WF_UC_RDX] = (uint64_t)&frame->uc;
	uc->reg[WF_UC_RAX] = 0;
	uc->reg[WF_UC_EFL] &= ~0x500ull; /* direction and trap flags are clear in a handler */
	wf_sigframe_reset_fp(uc);
}

#define XFEATURES_AMX (3ull << 17)
#define XFEATURE_FIRST_EXTENDED 2
#define XSTATE_HEADER_AT 512
#define XSTATE_HEADER_BYTES 64
#define FP_XSTATE_MAGIC2 0x46505845u

static uint64_t xfeatures(void)
{
	uint32_t lo, hi;

	__asm__("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
	return (uint64_t)hi << 32 | lo;
}

static void store_xstate(void *at, uint64_t features)
{
	__builtin_memset((char *)at + XSTATE_HEADER_AT, 0, XSTATE_HEADER_BYTES);
	__asm__ volatile("xsave64 (%0)" ::"r"(at), "a"((uint32_t)features),
			 "d"((uint32_t)(features >> 32))
			 : "memory");
}

void wf_arch_store_vectors(void *at)
{
	store_xstate(at, ~0ull);
}

void wf_arch_load_vectors(const void *at)
{
	__asm__ volatile("xrstor64 (%0)" ::"r"(at), "a"(~0u), "d"(~0u) : "memory");
}

/* Asked for once: where a hypervisor answers, it takes long. */
static uint32_t xstate_bytes(void)
{
	static uint32_t known; /* (a) the same whoever finds it out */
	uint32_t bytes = wf_load_relaxed(&known), size, at, c, d;
	uint64_t left = xfeatures() & ~XFEATURES_AMX;

	if (bytes)
		return bytes;
	bytes = XSTATE_HEADER_AT + XSTATE_HEADER_BYTES;
	for (left >>= XFEATURE_FIRST_EXTENDED, d = 0; left; left &= left - 1) {
		uint32_t part = (uint32_t)__builtin_ctzll(left) + XFEATURE_FIRST_EXTENDED;

		__asm__("cpuid" : "=a"(size), "=b"(at), "=c"(c), "=d"(d) : "0"(13), "2"(part));
		bytes = WF_MAX(bytes, at + size);
	}
	wf_store_relaxed(&known, bytes);
	return bytes;
}

size_t wf_sigframe_whole_fp_bytes(void)
{
	return xstate_bytes() + sizeof(FP_XSTATE_MAGIC2);
}

void wf_sigframe_store_whole_fp(void *fp)
{
	uint64_t features = xfeatures() & ~XFEATURES_AMX;
	uint32_t bytes = xstate_bytes();

	store_xstate(fp, features);
	*(struct fp_sw_bytes *)((char *)fp + FP_SW_OFFSET) = (struct fp_sw_bytes){
		.magic1 = FP_XSTATE_MAGIC1,
		.extended_size = bytes + sizeof(FP_XSTATE_MAGIC2),
		.features = features,
		.xstate_size = bytes,
	};
	*(uint32_t *)((char *)fp + bytes) = FP_XSTATE_MAGIC2;
}

void wf_sigframe_store_legacy_fp(void *fp)
{
	__asm__ volatile("fxsave64 (%0)" ::"r"(fp) : "memory");
	/* No extended state follows: clear the words that would say so. */
	__builtin_memset((char *)fp + FP_SW_OFFSET, 0, 48);
}

void wf_sigframe_of_call(struct wf_ucontext *uc, const struct wf_frame *f, bool restarts,
			 bool is_whole, void *fp)
{
	*uc = (struct wf_ucontext){
		.flags = UC_FLAGS | (is_whole ? UC_FP_XSTATE : 0),
		.fpstate = fp,
		.reg = {
			[WF_UC_R8] = f->r8, [WF_UC_R9] = f->r9, [WF_UC_R10] = f->r10,
			[WF_UC_R11] = RFLAGS_USER, [WF_UC_R12] = f->r12, [WF_UC_R13] = f->r13,
			[WF_UC_R14] = f->r14, [WF_UC_R15] = f->r15, [WF_UC_RDI] = f->rdi,
			[WF_UC_RSI] = f->rsi, [WF_UC_RBP] = f->rbp, [WF_UC_RBX] = f->rbx,
			[WF_UC_RDX] = f->rdx, [WF_UC_RAX] = restarts ? f->nr : f->rax,
			[WF_UC_RCX] = f->next, [WF_UC_RSP] = wf_frame_sp(f),
			[WF_UC_RIP] = restarts ? wf_frame_site(f) : f->next,
			[WF_UC_EFL] = RFLAGS_USER, [WF_UC_CSGSFS] = CSGSFS_USER,
		},
	};
}
