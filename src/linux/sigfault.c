// SPDX-License-Identifier: Apache-2.0
/*
 * Faults: signals that an instruction of this kernel thread raised, and others that the kernel has for it alone.
 *
 * Called by the kernel, on the kernel thread's alternate stack, wherever the fault came: in the program's code, in a system
 * call that we make for it, in a copy from or to its memory, or in a process that shares our memory but is not weft's.
 */
#include "arch/arch.h"
#include "linux/abi.h"
#include "linux/comm.h"
#include "linux/ending.h"
#include "linux/overflow.h"
#include "linux/sigdefault.h"
#include "linux/sigdeliver.h"
#include "linux/sigfault.h"
#include "linux/sigqueue.h"
#include "sched/preempt.h"
#include "sched/self.h"

#include <signal.h>

/*
 * A real call that we made for t raised a signal: SIGSYS by a filter that the program installed. It is the
 * program's call, so the thread takes it when it leaves the gate.
 */
static bool take_from_call(struct lx_thread *t, int sig, const struct wf_siginfo *info,
			   struct wf_ucontext *uc)
{
	void *handler = lx.action[sig].handler;

	if (!t || (sig != SIGSYS && !wf_arch_is_behind_raw_call(uc)))
		return false;
	if (handler == SIG_DFL || handler == SIG_IGN || t->sig_mask & lx_bit(sig)) {
		struct wf_siginfo copy = *info;

		lx_signal_default_action(sig, &copy); /* forced: neither ignored nor put off */
	}
	lx_pending_push_front(&t->pending, sig, info);
	(void)wf_fetch_or(&t->base.attention, WF_ATT_SIGNAL);
	wf_uc_set_result(uc, -ENOSYS);
	return true;
}

#define FORWARDED 0x6772616477656674ull

/*
 * We may be anywhere, also under a lock: the door decides. The kernel lets nobody but the door repeat what
 * kill() says of its sender, so that travels where the kernel does not look.
 */
static void forward(int sig, const struct wf_siginfo *info)
{
	struct wf_siginfo copy = *info;

	copy.code = SI_QUEUE;
	copy.words[2] = FORWARDED;
	copy.words[3] = (uint64_t)(int64_t)info->code;
	(void)sys4(__NR_rt_tgsigqueueinfo, wf_rt.pid, wf_rt.door->tid, sig, &copy);
}

void lx_signal_unforward(struct wf_siginfo *info)
{
	if (info->code != SI_QUEUE || info->words[2] != FORWARDED)
		return;
	info->code = (int)info->words[3];
	info->words[2] = info->words[3] = 0;
}

/*
 * A process that shares our memory (vfork, clone), or a child of one: not weft's, but it still has our handlers for
 * faults, which say for whom they were. From here on sig is the program's there, as all others are.
 */
static bool is_another_process(int sig, const struct wf_siginfo *info)
{
	int pid = (int)sys0(__NR_getpid), tid = (int)sys0(__NR_gettid);

	if (pid == wf_rt.pid)
		return false;
	(void)sys_sigaction(sig, &lx.action[sig], NULL);
	/* A fault comes again by itself. */
	if (info->code <= 0 && sys4(__NR_rt_tgsigqueueinfo, pid, tid, sig, info) < 0)
		(void)sys_tgkill(pid, tid, sig);
	return true;
}

static void open_faults(void)
{
	uint64_t mask = wf_worker_sigmask() | lx_bit(WF_SIG_KICK);

	(void)sys_sigprocmask(SIG_SETMASK, &mask, NULL);
}

static void say_overflow(const struct lx_overflow *o)
{
	if (lx_config.on_overflow && !wf_exchange(&lx.has_said_overflow, true))
		lx_config.on_overflow(o);
}

/*
 * No handler may run: the default action, by the kernel, at the faulting instruction itself when we return, so that
 * status and core are the fault's own. A fault of an instruction that is not made again is raised instead, and
 * strikes there, too.
 */
static void end_by_fault(int sig, const struct lx_thread *t, const struct wf_siginfo *info,
			 const struct wf_ucontext *uc)
{
	struct sys_sigaction dfl = { 0 };
	const uint64_t all = ~0ull;
	struct lx_overflow o;

	open_faults();            /* one in what we read and write comes here again */
	if (t && !lx_bind_tid(t)) /* that one has its name, and maybe a filter */
		lx_comm_lend(t);
	if (lx_ending_begin()) {
		if (t && lx_overflow_find(&o, t, info, uc))
			say_overflow(&o);
		lx_ending_tell(sig);
		if (lx.on_exit)
			lx.on_exit();
		lx_ending_over();
	}
	(void)sys_sigaction(sig, &dfl, NULL);
	if (sig != SIGTRAP && sig != SIGSYS)
		return;
	(void)sys_sigprocmask(SIG_SETMASK, &all, NULL);
	(void)sys4(__NR_rt_tgsigqueueinfo, wf_rt.pid, lx_kernel_tid(), sig, info);
}

/*
 * There is a handler, which a stack that has overflowed has no room for, unless it has another one. True: none can be
 * entered, here as on Linux.
 */
static bool has_no_room(struct lx_thread *t, const struct sys_sigaction *act,
			const struct wf_siginfo *info, const struct wf_ucontext *uc)
{
	const bool has_room = lx_overflow_has_room(t, act, uc);
	struct lx_overflow o;

	if ((has_room && !lx_config.always_says_overflow) || !lx_overflow_find(&o, t, info, uc))
		return false;
	if (has_room)
		say_overflow(&o);
	return !has_room;
}

/* A synchronous fault, on the kernel thread's alternate stack, with all faults and the kick blocked. */
void lx_signal_on_fault(int sig, void *siginfo, void *context)
{
	struct wf_siginfo *info = siginfo;
	struct wf_ucontext *uc = context;
	struct wf_kthread *k = wf_self_kthread();
	struct lx_thread *t = k && k->cur ? lx_of(k->cur) : NULL;
	struct sys_sigaction act = lx.action[sig];

	if (wf_is_kick(sig, info)) {
		open_faults(); /* as for a kick by its own number */
		wf_preempt_on_kick(sig, info, context);
		return;
	}
	/* Before any call: it may be the heir, whose filter knows few. */
	if (info->code > 0 && wf_arch_end_access(uc))
		return;
	if (!k && is_another_process(sig, info))
		return;
	/* sent by somebody, not a fault: the kernel found a thread that does not block it */
	if (info->code <= 0) {
		forward(sig, info);
		return;
	}
	if (wf_self_is_own_text(wf_uc_pc(uc)) && take_from_call(t, sig, info, uc))
		return;
	if (!t || (wf_self_is_own_text(wf_uc_pc(uc)) && !lx_gate.in_pool(wf_uc_pc(uc))) ||
	    act.handler == SIG_DFL || act.handler == SIG_IGN || t->sig_mask & lx_bit(sig)) {
		end_by_fault(sig, t, info, uc);
		return;
	}
	open_faults(); /* the handler's stack may be no stack */
	if (sig == SIGSEGV && has_no_room(t, &act, info, uc)) {
		end_by_fault(sig, t, info, uc);
		return;
	}
	lx_pending_push_front(&t->pending, sig, info);
	lx_signal_deliver_all(t, uc, 0);
}
