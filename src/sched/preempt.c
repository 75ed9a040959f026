// SPDX-License-Identifier: Apache-2.0
/*
 * The kick: interrupts a kernel thread to preempt its thread or to make it look at signals.
 *
 * The handler runs on the kernel thread's alternate stack. A thread is preempted only in the program's own
 * code: the runtime's text defers (the gate's exit looks at the attention word). To preempt, the whole
 * signal frame is copied into a save area and the thread goes on later through rt_sigreturn from there: its
 * own stack is not touched, so threads with minimal stacks can be preempted anywhere.
 *
 * Rules: at most one kick outstanding per kernel thread (kick_sent), cleared before anything is looked at, so
 * a kick sent later is not lost: it is blocked until the handler returns, and finds the program's code again.
 * The handler never keeps the kernel thread across the switch: the resumed side starts over with the kernel
 * thread it finds.
 */
#include "mem/stack.h"
#include "sched/preempt.h"
#include "arch/arch.h"
#include "base/die.h"
#include "sched/balance.h"
#include "sched/kick.h"
#include "sched/runtime.h"
#include "sched/self.h"
#include "sched/worker.h"

#include <signal.h>

#define RESUME_STACK_BYTES 2048 /* C code runs here between the switch and rt_sigreturn */

struct save_area {
	char stack[RESUME_STACK_BYTES];
	struct wf_thread *owner;
	struct wf_ucontext *uc;
	char frame[] WF_ALIGNED(64);
};

/*
 * A page fault may wait for another thread of the program: one that reads from a userfaultfd. A kick interrupts it, and
 * then that thread finds nothing to serve until the fault is made again, by which time it sleeps. So who is found in
 * the same place so often, having used less time than it takes to get anywhere, is not preempted any more.
 */
#define STILL_NS (100 * WF_US)
#define STILL_TIMES 3

static int64_t cpu_ns(void)
{
	int64_t ns = 0;

	(void)sys_clock_read(3 /* CLOCK_THREAD_CPUTIME_ID */, &ns);
	return ns;
}

static bool stands_still(struct wf_thread *t, uint64_t pc)
{
	if (t->preempted_at != pc ||
	    (t->nr_still && (uint64_t)(cpu_ns() - t->still_since_ns) > STILL_NS)) {
		t->preempted_at = pc;
		t->nr_still = 0;
		return false;
	}
	if (++t->nr_still < STILL_TIMES)
		return false;
	t->nr_still = 0;
	return true;
}

static void set_worker_stack(const struct wf_kthread *k, struct wf_ucontext *uc)
{
	/* sigreturn installs what the frame says: it must be the alternate stack of the kernel thread we are on. */
	uc->stack = (struct wf_stack_t){ .sp = k->altstack, .size = WF_ALTSTACK_BYTES };
}

/*
 * Somebody wants the processor of a thread that is on its way back, and has no stack to be left on: it is asked once more as
 * soon as it is back, when the kernel puts its mask in place.
 */
static void ask_again(struct wf_kthread *k)
{
	const uint64_t kick = 1ull << (WF_SIG_KICK - 1) | 1ull << (WF_SIG_KICK_SPARE - 1);

	(void)sys_sigprocmask(SIG_BLOCK, &kick, NULL);
	wf_store_release(&k->preempt, WF_PREEMPT_WAKE);
	wf_kick(k);
}

/* First code of a preempted thread that runs again; on its save area's own stack. */
static void resume(void *arg)
{
	struct save_area *area = arg;
	struct wf_kthread *k = wf_self_kthread();
	struct wf_thread *t = area->owner;

	wf_worker_finish_switch(k);
	/* The area becomes our spare while we still read it: only this kernel thread can hand it out again. */
	if (k->save_area)
		wf_slab_put(&wf_rt.save_areas, k->save_area);
	k->save_area = area;
	if (t->nr_still)
		t->still_since_ns = cpu_ns();
	set_worker_stack(k, area->uc);
	for (;;) {
		/* Not that for which it was preempted: see preempt(). */
		bool is_wanted = wf_load_acquire(&t->attention) & WF_ATT_RESCHED;

		wf_rt.hooks->resuming(t, area->uc);
		t->is_preempted = false;
		if (WF_UNLIKELY(is_wanted))
			ask_again(k);
		wf_arch_sigreturn(area->uc, &t->attention);
	}
}

static void preempt(struct wf_kthread *k, struct wf_ucontext *uc)
{
	struct save_area *area = k->save_area;
	struct wf_thread *t = k->cur;
	uint64_t mask = wf_worker_sigmask();

	if (wf_worker_keeps(k->worker, t))
		return;
	if (!area)
		area = wf_slab_get(&wf_rt.save_areas);
	if (!area)
		return; /* no memory: the thread keeps its CPU until the next tick */
	k->save_area = NULL;
	area->owner = t;
	area->uc = wf_sigframe_save(area->frame, uc);
	k->count.preempts++;
	WF_TRACE(k, WF_EV_PREEMPT, wf_uc_pc(uc), 0);
	/*
	 * Threads that pass a lock among them by time-outs (an interpreter's lock) go into its queue in the order
	 * in which they run now: the last owner before all others would mean that two of them keep the lock.
	 */
	wf_runq_end_handoff(&k->worker->rq);
	t->sp = wf_arch_make_resume(area->stack + sizeof(area->stack), resume, area, area->uc);
	(void)wf_fetch_and(&t->attention, ~WF_ATT_RESCHED); /* it does give way */
	/* A reader from outside may stop us anywhere: from here on the frame at sp counts. */
	wf_store_release(&t->is_preempted, true);
	(void)sys_sigprocmask(SIG_SETMASK, &mask, NULL); /* who runs next is open to kicks */
	wf_worker_switch_last(k, wf_balance_leave(k, WF_PREV_PREEMPT));
}

bool wf_is_kick(int sig, const struct wf_siginfo *info)
{
	if (sig == WF_SIG_KICK)
		return true;
	/* Without room the kernel keeps nothing but the number: it then says that nobody in particular sent it. */
	return sig == WF_SIG_KICK_SPARE &&
	       ((info->code == SI_TKILL && info->kill.pid == wf_rt.pid) ||
		(info->code == SI_USER && !info->kill.pid));
}

/* The slice of t, which runs on w, is over: it gives way here, or at the gate's exit. */
static void end_slice(struct wf_thread *t, struct wf_worker *w, bool is_spin)
{
	t->slice_left = -(int32_t)wf_worker_slice(w);
	wf_store_hint(&w->spins, (uint8_t)(is_spin ? wf_habit_rise(WF_HABIT_SPINS, w->spins, 1)
						   : wf_habit_fall(WF_HABIT_SPINS, w->spins)));
	t->hog = wf_habit_rise(WF_HABIT_HOG, t->hog, 1) & 15u;
}

void wf_preempt_on_kick(int sig, void *info, void *context)
{
	struct wf_ucontext *uc = context;
	struct wf_kthread *k = wf_self_kthread();
	struct wf_worker *w;
	bool is_ours;
	uint32_t wants_cpu;

	(void)sig;
	(void)info;
	if (!k || k->is_door)
		return;
	if (WF_UNLIKELY(k->takes_altstack))
		set_worker_stack(k, uc);
	wf_store_seq_cst(&k->kick_sent, 0u);
	wants_cpu = wf_exchange(&k->preempt, 0u);
	w = wf_load_relaxed(&k->worker); /* in a call it may be taken from us at any moment */
	if (!w)
		wants_cpu = 0;
	wf_rt.hooks->kicked(k);
	WF_TRACE(k, WF_EV_KICK, 0, wf_uc_pc(uc));
	if (!k->cur)
		return;
	is_ours = (wf_self_is_own_text(wf_uc_pc(uc)) && !wf_rt.hooks->is_copy(wf_uc_pc(uc))) ||
		  wf_load_relaxed(&k->in_clock);
	if (wants_cpu == WF_PREEMPT_SLICE)
		end_slice(k->cur, w, !is_ours && wf_rt.hooks->is_spin(wf_uc_pc(uc)));
	if (is_ours) {
		if (wants_cpu)
			(void)wf_fetch_or(&k->cur->attention, WF_ATT_RESCHED);
		wf_rt.hooks->in_runtime(uc);
		return;
	}
	if (!wf_rt.hooks->interrupted(k->cur, uc)) {
		if (wants_cpu)
			(void)wf_fetch_or(&k->cur->attention, WF_ATT_RESCHED);
		return;
	}
	if (!wants_cpu || !k->worker)
		return;
	if (WF_UNLIKELY(stands_still(k->cur, wf_uc_pc(uc))))
		wf_rt.hooks->stands_still(k->cur);
	else
		preempt(k, uc);
}

static void on_kick(int sig, void *info, void *context)
{
	wf_self_handle(wf_preempt_on_kick, sig, info, context);
}

static void on_spare(int sig, void *info, void *context)
{
	if (wf_is_kick(sig, info))
		on_kick(sig, info, context);
}

void wf_preempt_take_kicks(void)
{
	struct sys_sigaction kick = {
		.handler = (void *)on_kick,
		.flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART | SYS_SA_RESTORER,
		.restorer = (void *)wf_arch_restorer_native,
	};

	(void)sys_sigaction(WF_SIG_KICK, &kick, NULL);
	kick.handler = (void *)on_spare;
	(void)sys_sigaction(WF_SIG_KICK_SPARE, &kick, NULL);
}

void wf_preempt_settle(struct wf_kthread *k)
{
	for (uint32_t round = 0;
	     wf_load_seq_cst(&k->nr_preempting) || wf_load_seq_cst(&k->kick_sent); round++)
		sys_relax(round);
}

void wf_preempt_init_kthread(struct wf_kthread *k)
{
	struct wf_stack_t ss = { .sp = k->altstack, .size = WF_ALTSTACK_BYTES };
	uint64_t mask = wf_worker_sigmask();

	/*
	 * The door takes its kicks with rt_sigtimedwait: none is lost, and none interrupts it elsewhere. The same
	 * for faults that are none, but sent by somebody.
	 */
	if (k->is_door)
		mask = ~0ull;
	k->takes_altstack = sys2(__NR_sigaltstack, &ss, NULL) < 0;
	WF_ASSERT(sys_sigprocmask(SIG_SETMASK, &mask, NULL) == 0);
	/*
	 * A kick until now had no tid to go to, or a handler that did not know itself: nothing has run here that
	 * it could be for, but for a request to the kernel thread. A flag left up would stop every later kick.
	 */
	wf_store_seq_cst(&k->kick_sent, 0u);
	wf_store_relaxed(&k->preempt, 0u);
	if (WF_UNLIKELY(k->takes_altstack && !k->is_door)) {
		/* A filter that the program has set refuses the call: a handler's return sets the stack, too. */
		wf_kick(k);
		k->takes_altstack = false;
	}
	wf_rt.hooks->kicked(k);
}

uint64_t wf_worker_sigmask(void)
{
	const int open[] = { WF_SIG_KICK, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS };
	uint64_t mask = ~0ull;

	for (size_t i = 0; i < ARRAY_LEN(open); i++)
		mask &= ~(1ull << (open[i] - 1));
	return mask;
}
