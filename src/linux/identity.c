// SPDX-License-Identifier: Apache-2.0
/* prctl, and what a dead thread's stack is kept for. */
#include "linux/bindcalls.h"
#include "linux/call.h"
#include "linux/calls.h"
#include "linux/comm.h"
#include "linux/deathsig.h"
#include "linux/remote.h"
#include "linux/sandbox.h"

#include <linux/prctl.h>

#define MADV_DONTNEED 4

static long set_name(struct lx_thread *self, const char *user)
{
	char name[16] = { 0 };

	for (size_t i = 0; i < sizeof(name) - 1; i++) {
		if (wf_arch_copy(&name[i], user + i, 1) < 0)
			return -EFAULT;
		if (!name[i])
			break;
	}
	__builtin_memcpy(self->name, name, sizeof(name));
	lx_comm_tell_kernel(self);
	return 0;
}

static long set_death_signal(struct wf_frame *f, uint64_t sig)
{
	struct lx_thread *self = lx_self();
	long ret;

	if (!sig && !self->has_death_signal)
		return 0;
	ret = lx_deathsig_is_at_door(self)
		      ? lx_remote_do(wf_rt.door, LX_REMOTE_SET_DEATH_SIGNAL, (long)sig, 0, 0, 0)
		      : lx_bind_call(f);
	if (ret == 0)
		self->has_death_signal = true;
	return ret;
}

static long get_death_signal(struct wf_frame *f)
{
	const struct lx_thread *self = lx_self();
	long ret = 0;
	int sig;

	if (self->has_death_signal && !lx_deathsig_is_at_door(self))
		return lx_raw(f);
	if (self->has_death_signal)
		ret = lx_remote_do(wf_rt.door, LX_REMOTE_DEATH_SIGNAL, 0, 0, 0, 0);
	if (ret < 0)
		return ret;
	sig = (int)ret;
	return wf_arch_copy((void *)WF_ARG1(f), &sig, sizeof(sig));
}

long sysc_prctl(struct wf_frame *f)
{
	struct lx_thread *self = lx_self();

	switch (WF_ARG0(f)) {
	case PR_SET_NAME:
		return set_name(self, (const char *)WF_ARG1(f));
	case PR_GET_NAME:
		return wf_arch_copy((void *)WF_ARG1(f), self->name, sizeof(self->name));
	case PR_SET_TIMERSLACK:
		self->timer_slack_ns = (int64_t)WF_ARG1(f) > 0 ? (int64_t)WF_ARG1(f)
							       : self->default_slack_ns;
		return 0;
	case PR_GET_TIMERSLACK:
		return self->timer_slack_ns;
	case PR_SET_PDEATHSIG:
		return set_death_signal(f, WF_ARG1(f));
	case PR_GET_PDEATHSIG:
		return get_death_signal(f);
	case PR_GET_TID_ADDRESS:
		return wf_arch_copy((void *)WF_ARG1(f), &self->child_tid, sizeof(self->child_tid));
	default:
		return lx_sandbox_prctl(f);
	}
}

#define CALL_OPCODE 0xe8
#define CALL_BYTES 5
#define TO_SYSCALL_BYTES 16 /* from the beginning of madvise() to behind its system call */

/*
 * The call of libc's that gives back a dead thread's stack: libc's madvise(), called by libc itself. The address that
 * it returns to is not enough: a thread's function may end in a jump to madvise(), and returns to libc, too.
 */
static bool is_end_of_thread(const struct wf_frame *f)
{
	struct {
		uint8_t opcode;
		int32_t to;
	} __attribute__((packed)) call;
	uintptr_t ret = 0;

	_Static_assert(sizeof(call) == CALL_BYTES, "as the processor has it");
	return lx_gate.in_libc(f->next) &&
	       wf_arch_copy(&ret, (const void *)wf_frame_sp(f), sizeof(ret)) == 0 &&
	       lx_gate.in_libc(ret - CALL_BYTES) &&
	       wf_arch_copy(&call, (const void *)(ret - CALL_BYTES), sizeof(call)) == 0 &&
	       call.opcode == CALL_OPCODE &&
	       f->next - (ret + (uintptr_t)(intptr_t)call.to) <= TO_SYSCALL_BYTES;
}

/*
 * libc gives back the unused part of a dead thread's stack with madvise: a system call, and page faults for
 * the next thread on it. A thread that hardly ran has touched little: its pages stay with the cached stack. One
 * that lived longer may have gone deep, and its stack is given back.
 */
#define SHORT_LIFE_SWITCHES 32
#define SHORT_LIFE_NS (5 * WF_MS)

long sysc_madvise(struct wf_frame *f)
{
	struct lx_thread *self = lx_self();
	uintptr_t low = WF_ARG0(f), high = low + WF_ARG1(f);

	if (WF_ARG2(f) == MADV_DONTNEED && self->stack_high && low >= self->stack_low &&
	    high <= self->stack_high && WF_ARG1(f) &&
	    self->base.nr_switches <= SHORT_LIFE_SWITCHES && self->base.run_ns < SHORT_LIFE_NS &&
	    is_end_of_thread(f))
		return 0;
	return lx_blocking(f, false);
}
