// SPDX-License-Identifier: Apache-2.0
/*
 * The system calls about signals: masks, actions, waiting, sending. signals.c decides which thread gets what.
 *
 * A thread that waits for a signal is parked interruptibly; whatever is posted to it ends the park, and it
 * looks for itself whether that was what it waited for.
 */
#include "linux/abi.h"
#include "linux/action.h"
#include "linux/calls.h"
#include "linux/credentials.h"
#include "linux/deadline.h"
#include "linux/doorbell.h"
#include "linux/scope.h"
#include "linux/signals.h"
#include "linux/sigpark.h"
#include "linux/sigqueue.h"
#include "linux/sigwant.h"
#include "sched/clock.h"

#include <signal.h>

long sysc_rt_sigprocmask(struct wf_frame *f)
{
	struct lx_thread *self = lx_self();
	uint64_t old = self->sig_mask, set = 0;

	if (WF_ARG3(f) != sizeof(uint64_t))
		return -EINVAL;
	if (WF_ARG1(f)) {
		if (wf_arch_copy(&set, (const void *)WF_ARG1(f), sizeof(set)) < 0)
			return -EFAULT;
		switch ((int)WF_ARG0(f)) {
		case SIG_BLOCK:
			lx_signal_set_mask(self, old | set);
			break;
		case SIG_UNBLOCK:
			lx_signal_set_mask(self, old & ~set);
			break;
		case SIG_SETMASK:
			lx_signal_set_mask(self, set);
			break;
		default:
			return -EINVAL;
		}
	}
	if (WF_ARG2(f) && wf_arch_copy((void *)WF_ARG2(f), &old, sizeof(old)) < 0)
		return -EFAULT;
	return 0;
}

long sysc_rt_sigaction(struct wf_frame *f)
{
	int sig = (int)WF_ARG0(f);
	struct sys_sigaction act = { 0 }, old;

	if (WF_ARG3(f) != sizeof(uint64_t))
		return -EINVAL;
	if (WF_ARG1(f) && wf_arch_copy(&act, (const void *)WF_ARG1(f), sizeof(act)) < 0)
		return -EFAULT;
	if (sig < 1 || sig > WF_NR_SIGNALS || (WF_ARG1(f) && (sig == SIGKILL || sig == SIGSTOP)))
		return -EINVAL;
	act.mask &= ~LX_UNBLOCKABLE;
	wf_spin_lock(&lx.action_lock);
	old = lx.action[sig];
	if (WF_ARG1(f)) {
		lx.action[sig] = act;
		lx_action_tell_kernel(sig);
	}
	wf_spin_unlock(&lx.action_lock);
	if (WF_ARG1(f) && lx_signal_is_ignored(sig))
		lx_signal_flush(lx_bit(sig)); /* what became ignored is gone */
	if (WF_ARG2(f) && wf_arch_copy((void *)WF_ARG2(f), &old, sizeof(old)) < 0)
		return -EFAULT;
	return 0;
}

long sysc_rt_sigpending(struct wf_frame *f)
{
	struct lx_thread *self = lx_self();
	uint64_t set = 0;

	if (WF_ARG1(f) > sizeof(set))
		return -EINVAL;
	/* The door may be holding one that it is about to put back. */
	lx_door_pass();
	/* The kernel's answer is the process's, plus this kernel thread's own, which holds nothing of ours. */
	(void)sys2(__NR_rt_sigpending, &set, sizeof(set));
	set |= wf_load_seq_cst(&self->pending.set) | wf_load_seq_cst(&lx.shared.set);
	set &= self->sig_mask;
	return wf_arch_copy((void *)WF_ARG0(f), &set, WF_ARG1(f));
}

long sysc_rt_sigtimedwait(struct wf_frame *f)
{
	struct lx_thread *self = lx_self();
	struct wf_siginfo info;
	int64_t deadline = WF_NEVER;
	uint64_t set = 0;
	long ret = 0;
	uint32_t flags = WF_INTR | WF_REACHED;
	bool is_stopped = false;
	int sig;

	if (WF_ARG3(f) != sizeof(set))
		return -EINVAL;
	if (wf_arch_copy(&set, (const void *)WF_ARG0(f), sizeof(set)) < 0)
		return -EFAULT;
	set &= ~LX_UNBLOCKABLE;
	if (WF_ARG2(f))
		ret = lx_deadline_relative((const void *)WF_ARG2(f), &deadline);
	if (ret < 0)
		return ret;
	wf_store_seq_cst(&self->sig_awaited, set);
	lx_signal_unpark_and_wait(set);
	if (deadline != WF_NEVER && deadline <= wf_now()) {
		flags = WF_INTR;
		lx_door_pass(); /* only looks: the door may be on its way with one */
	}
	for (;;) {
		enum wf_reason reason;

		wf_park_begin(flags, WF_WAIT_SIGNAL, set);
		sig = lx_signal_take(self, set, &info);
		if (sig || lx_signal_is_waiting(self)) {
			(void)wf_park_abort();
			break;
		}
		reason = wf_park(deadline);
		sig = lx_signal_take(self, set, &info);
		is_stopped = flags & WF_REACHED && lx_scope_is_over(self);
		if (sig || is_stopped || reason == WF_WAKE_TIMEOUT || lx_signal_is_waiting(self))
			break;
	}
	wf_store_seq_cst(&self->sig_awaited, 0ull);
	lx_signal_retarget(set & self->sig_mask);
	if (!sig)
		return is_stopped || lx_signal_is_waiting(self) ? -EINTR : -EAGAIN;
	if (WF_ARG1(f) && wf_arch_copy((void *)WF_ARG1(f), &info, sizeof(info)) < 0)
		return -EFAULT;
	return sig;
}

/* Wait for a handler to run, with mask in effect meanwhile. */
static long suspend_with(uint64_t mask)
{
	struct lx_thread *self = lx_self();

	self->sig_saved_mask = self->sig_mask;
	self->has_saved_mask = true;
	lx_signal_set_mask(self, mask);
	while (!lx_scope_stops(self)) {
		wf_park_begin(WF_INTR | WF_REACHED, WF_WAIT_SIGNAL, ~mask);
		if (lx_signal_is_waiting(self)) {
			(void)wf_park_abort();
			break;
		}
		(void)wf_park(WF_NEVER);
	}
	return -ERESTARTNOHAND;
}

long sysc_rt_sigsuspend(struct wf_frame *f)
{
	uint64_t mask = 0;

	if (WF_ARG1(f) != sizeof(mask))
		return -EINVAL;
	if (wf_arch_copy(&mask, (const void *)WF_ARG0(f), sizeof(mask)) < 0)
		return -EFAULT;
	return suspend_with(mask);
}

long sysc_pause(struct wf_frame *f)
{
	(void)f;
	return suspend_with(lx_self()->sig_mask);
}

static struct wf_siginfo info_from_self(int sig, int code)
{
	struct wf_siginfo info = { .signo = sig, .code = code };

	info.kill.pid = wf_rt.pid;
	info.kill.uid = (unsigned)sys0(__NR_getuid);
	return info;
}

static long send_to_thread(uint32_t tid, int sig, const struct wf_siginfo *info)
{
	if (!lx_by_tid(tid))
		return -ESRCH;
	if (sig < 0 || sig > WF_NR_SIGNALS)
		return -EINVAL;
	if (sig == SIGKILL || sig == SIGSTOP)
		return sys2(__NR_kill, wf_rt.pid, sig);
	return sig ? lx_signal_post(tid, sig, info) : 0;
}

long sysc_tgkill(struct wf_frame *f)
{
	int sig = (int)WF_ARG2(f);
	struct wf_siginfo info = info_from_self(sig, SI_TKILL);
	bool is_round = lx_credentials_is_round(f, sig);
	long ret;

	if ((int)WF_ARG0(f) <= 0 || (int)WF_ARG1(f) <= 0)
		return -EINVAL;
	if ((int)WF_ARG0(f) != wf_rt.pid)
		return lx_raw(f);
	if (is_round)
		lx_credentials_sent();
	ret = send_to_thread((uint32_t)WF_ARG1(f), sig, &info);
	if (is_round && ret < 0)
		lx_credentials_not_sent();
	return ret;
}

long sysc_tkill(struct wf_frame *f)
{
	struct wf_siginfo info = info_from_self((int)WF_ARG1(f), SI_TKILL);
	uint32_t tid = (uint32_t)WF_ARG0(f);

	if ((int)tid <= 0)
		return -EINVAL;
	if (tid < WF_TID_BASE && tid != (uint32_t)wf_rt.pid)
		return lx_raw(f);
	return send_to_thread(tid, (int)WF_ARG1(f), &info);
}

/* Does pid mean this process? As on Linux, each of its threads stands for it. */
static bool is_ours(int pid)
{
	return pid == wf_rt.pid || (pid >= (int)WF_TID_BASE && lx_by_tid((uint32_t)pid));
}

/* For the kernel: a signal that is none, or that it performs on the whole process. */
static bool is_for_kernel(int sig)
{
	return sig < 1 || sig > WF_NR_SIGNALS || sig == SIGKILL || sig == SIGSTOP;
}

/* To ourselves: in user space, since POSIX wants it delivered before the call returns. */
long sysc_kill(struct wf_frame *f)
{
	int pid = (int)WF_ARG0(f), sig = (int)WF_ARG1(f);
	struct wf_siginfo info;
	long ret;

	if (!is_ours(pid) || is_for_kernel(sig)) {
		ret = sys2(__NR_kill, is_ours(pid) ? wf_rt.pid : pid, sig);
		/* A group, and we may be in it. */
		if (ret == 0 && pid <= 0)
			lx_door_pass();
		return ret;
	}
	info = info_from_self(sig, SI_USER);
	return lx_signal_send_self(sig, &info);
}

/* Only to itself may a thread send what looks as if it came from the kernel or from kill(). */
static bool is_forged(const struct wf_siginfo *info, uint32_t to)
{
	return (info->code >= 0 || info->code == SI_TKILL) && to != lx_tid(lx_self());
}

/* It may be our own: then it has been delivered too before we return. */
long sysc_pidfd_send_signal(struct wf_frame *f)
{
	long ret = lx_raw(f);

	if (ret == 0 && WF_ARG1(f))
		lx_door_pass();
	return ret;
}

long sysc_rt_sigqueueinfo(struct wf_frame *f)
{
	int sig = (int)WF_ARG1(f);
	struct wf_siginfo info;

	if (!is_ours((int)WF_ARG0(f)))
		return lx_raw(f);
	if (wf_arch_copy(&info, (const void *)WF_ARG2(f), sizeof(info)) < 0)
		return -EFAULT;
	if (is_forged(&info, (uint32_t)WF_ARG0(f)))
		return -EPERM;
	if (is_for_kernel(sig))
		return sys2(__NR_kill, wf_rt.pid, sig);
	info.signo = sig;
	return lx_signal_send_self(sig, &info);
}

long sysc_rt_tgsigqueueinfo(struct wf_frame *f)
{
	struct wf_siginfo info;

	if ((int)WF_ARG0(f) != wf_rt.pid)
		return lx_raw(f);
	if (wf_arch_copy(&info, (const void *)WF_ARG3(f), sizeof(info)) < 0)
		return -EFAULT;
	if ((int)WF_ARG1(f) <= 0)
		return -EINVAL;
	if (is_forged(&info, (uint32_t)WF_ARG1(f)))
		return -EPERM;
	info.signo = (int)WF_ARG2(f);
	return send_to_thread((uint32_t)WF_ARG1(f), (int)WF_ARG2(f), &info);
}

/* Of set, what the caller has pending must now lie where the descriptor shows it. */
static void show_in_signalfd(uint64_t set)
{
	struct lx_thread *self = lx_self();
	uint64_t blocked = set & wf_load_relaxed(&self->sig_mask);
	struct wf_siginfo info;
	int sig;

	(void)wf_fetch_or(&lx.signalfds, set);
	while ((sig = lx_pending_take(&self->pending, blocked, &info)))
		(void)lx_pending_add(&lx.shared, 0, sig, &info, false);
	if (!(wf_load_seq_cst(&lx.shared.set) & blocked))
		return;
	(void)wf_fetch_or(&lx.to_park, blocked);
	lx_door_pass();
}

long sysc_signalfd(struct wf_frame *f)
{
	uint64_t mask = 0;
	long fd = sysc_new_fd(f);

	if (fd >= 0 && wf_arch_copy(&mask, (const void *)WF_ARG1(f), sizeof(mask)) == 0)
		show_in_signalfd(mask);
	return fd;
}
