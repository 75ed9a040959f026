// SPDX-License-Identifier: Apache-2.0
/* arch/x86_64/sigframe: against the frames that the kernel builds. */
#include "arch/x86_64/sigframe.h"

#include <signal.h>
#include <string.h>
#include <sys/auxv.h>
#include <ucontext.h>

#include "tap.h"

#define AREA_BYTES 65536

static char area[AREA_BYTES] WF_ALIGNED(64);
static size_t fp_bytes, save_bytes;
static struct wf_ucontext original, *saved;
static bool is_fp_same;

static void on_signal(int sig, siginfo_t *info, void *context)
{
	struct wf_ucontext *uc = context;

	original = *uc;
	fp_bytes = wf_sigframe_fp_bytes(uc);
	saved = wf_sigframe_save(area, uc);
	is_fp_same = saved->fpstate && !memcmp(saved->fpstate, uc->fpstate, fp_bytes);
}

static void take_a_signal(void)
{
	struct sigaction sa = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO };

	(void)sigaction(SIGUSR1, &sa, NULL);
	(void)raise(SIGUSR1);
	save_bytes = wf_sigframe_save_bytes(getauxval(AT_MINSIGSTKSZ));
}

TEST(the_layout_is_the_kernels)
{
	CHECK_EQ(offsetof(struct wf_ucontext, reg), offsetof(ucontext_t, uc_mcontext.gregs));
	CHECK_EQ(offsetof(struct wf_ucontext, fpstate), offsetof(ucontext_t, uc_mcontext.fpregs));
	CHECK_EQ(offsetof(struct wf_ucontext, sigmask), offsetof(ucontext_t, uc_sigmask));
	CHECK_EQ(WF_UC_RIP, REG_RIP);
	CHECK_EQ(WF_UC_RSP, REG_RSP);
	CHECK_EQ(WF_UC_RAX, REG_RAX);
	CHECK_EQ(WF_UC_CR2, REG_CR2);
}

TEST(a_saved_frame_has_its_own_fpu_state)
{
	take_a_signal();
	if (!CHECK(saved != NULL))
		return;
	CHECK(fp_bytes >= WF_LEGACY_FP_BYTES);
	CHECK((char *)saved > area && (char *)saved < area + AREA_BYTES);
	CHECK(saved->fpstate != original.fpstate);
	CHECK((char *)saved->fpstate >= (char *)(saved + 1));
	CHECK_EQ((uintptr_t)saved->fpstate % 64, 0);
	CHECK(is_fp_same);
	CHECK_EQ(saved->reg[WF_UC_RIP], original.reg[WF_UC_RIP]);
	CHECK_EQ(saved->sigmask, original.sigmask);
}

TEST(the_announced_size_is_enough)
{
	take_a_signal();
	CHECK((size_t)((char *)saved->fpstate + fp_bytes - area) <= save_bytes);
}

TEST(a_placed_frame_is_aligned_and_lies_below)
{
	for (uintptr_t sp = 0x10000; sp < 0x10100; sp += 8) {
		void *fp;
		struct wf_sigframe *f = wf_sigframe_place(sp, 832, &fp);

		CHECK_EQ(((uintptr_t)f + 8) % 16, 0);
		CHECK_EQ((uintptr_t)fp % 64, 0);
		CHECK((uintptr_t)fp + 832 <= sp);
		CHECK((uintptr_t)(f + 1) <= (uintptr_t)fp);
	}
}

TEST(no_fpu_state_needs_no_room)
{
	struct wf_ucontext uc = { 0 };
	void *fp = area;

	CHECK_EQ(wf_sigframe_fp_bytes(&uc), 0);
	CHECK(!wf_sigframe_save(area, &uc)->fpstate);
	(void)wf_sigframe_place(0x10000, 0, &fp);
	CHECK(!fp);
	wf_sigframe_reset_fp(&uc);
}

TEST(a_whole_state_is_marked_at_both_ends)
{
	static char fp[AREA_BYTES] WF_ALIGNED(64);
	struct wf_ucontext uc = { .fpstate = fp };
	uint32_t mark;

	wf_sigframe_store_whole_fp(fp);
	CHECK_EQ(wf_sigframe_fp_bytes(&uc), wf_sigframe_whole_fp_bytes());
	memcpy(&mark, fp + wf_sigframe_whole_fp_bytes() - sizeof(mark), sizeof(mark));
	CHECK_EQ(mark, 0x46505845); /* else the kernel takes the legacy part alone */
}

TEST(a_handler_starts_with_clear_flags)
{
	struct wf_ucontext uc = { 0 };

	uc.reg[WF_UC_EFL] = 0xfd7; /* trap, interrupts, direction and all that arithmetic sets */
	wf_sigframe_enter(&uc, (void *)area, (void *)1, SIGUSR1);
	CHECK_EQ(uc.reg[WF_UC_EFL], 0xad7);
}

TEST(a_handler_starts_with_a_fresh_fpu)
{
	static char fp[512] WF_ALIGNED(64);
	struct wf_ucontext uc = { .fpstate = fp };
	uint32_t mxcsr;

	wf_sigframe_store_legacy_fp(fp);
	CHECK_EQ(wf_sigframe_fp_bytes(&uc), WF_LEGACY_FP_BYTES);
	memset(fp, 0xff, 32);
	wf_sigframe_reset_fp(&uc);
	memcpy(&mxcsr, fp + 24, sizeof(mxcsr));
	CHECK_EQ(mxcsr, 0x1f80);
	CHECK_EQ((unsigned char)fp[0] | (unsigned char)fp[1] << 8, 0x37f);
}
