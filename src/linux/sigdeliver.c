// SPDX-License-Identifier: Apache-2.0
/*
 * Delivery: running a handler, or the default action, in the context of a thread.
 *
 * A handler gets a frame of the kernel's own layout on the stack that the program chose, showing the registers
 * of the interrupted call or instruction as Linux would show them, with addresses of the original code, never
 * of a trampoline. It returns through wf_arch_restorer, which puts the virtual mask back and lets the kernel
 * restore the registers, so what the handler changed in the frame takes effect.
 *
 * A handler may unwind or jump out: when one starts, no lock is held and nobody waits on this stack.
 */
#include "arch/arch.h"
#include "linux/abi.h"
#include "linux/calls.h"

#include <signal.h>

#define RFLAGS_USER 0x202
#define CSGSFS_USER 0x002b000000000033ull
#define UC_FLAGS 0x6 /* UC_SIGCONTEXT_SS | UC_STRICT_RESTORE_SS */
#define SYSCALL_BYTES 2

void wf_arch_restorer(void);

/* Take the next signal that has an effect, with the action to run. 0: nothing left. */
static int next_signal(struct lx_thread *t, struct wf_siginfo *info, struct sys_sigaction *act)
{
	int sig;

	while ((sig = lx_signal_take(t, ~t->sig_mask, info))) {
		wf_spin_lock(&lx.action_lock);
		*act = lx.action[sig];
		if (act->handler != SIG_DFL && act->handler != SIG_IGN && act->flags & SA_RESETHAND)
			lx.action[sig].handler = SIG_DFL;
		wf_spin_unlock(&lx.action_lock);
		if (act->handler == SIG_IGN ||
		    (act->handler == SIG_DFL && lx_signal_default_ignores(sig)))
			continue;
		return sig;
	}
	return 0;
}

/*
 * The kernel performs it: unblocked here for an instant, raised for this very kernel thread. Stops return
 * when the process is continued; everything else does not.
 */
static void default_action(int sig, struct wf_siginfo *info)
{
	struct sys_sigaction dfl = { 0 };
	uint64_t set = lx_bit(sig);
	bool stops = sig == SIGTSTP || sig == SIGTTIN || sig == SIGTTOU;

	(void)sys_sigaction(sig, &dfl, NULL);
	if (!stops) {
		lx_thread_walk_all_robust_lists();
		if (lx.on_exit)
			lx.on_exit();
	}
	if (stops || sys4(__NR_rt_tgsigqueueinfo, wf_rt.pid, sys0(__NR_gettid), sig, info) < 0)
		(void)sys_tgkill(wf_rt.pid, (int)sys0(__NR_gettid), sig);
	(void)sys_sigprocmask(SIG_UNBLOCK, &set, NULL);
	if (!stops)
		(void)sys1(__NR_exit_group, 128 + sig); /* a signal that does not kill after all */
	(void)sys_sigprocmask(SIG_BLOCK, &set, NULL);
}

/* Where the handler's frame goes: the alternate stack if asked for and not there already. */
static uintptr_t handler_stack(const struct lx_thread *t, const struct sys_sigaction *act,
			       uintptr_t sp)
{
	if (act->flags & SA_ONSTACK && lx_altstack_state(&t->altstack, sp) == 0)
		return (uintptr_t)t->altstack.sp + t->altstack.size;
	return sp - WF_RED_ZONE;
}

/* Fill the parts of a frame that do not depend on where the context comes from, and block what the action says. */
static void finish_frame(struct lx_thread *t, struct wf_sigframe *frame, int sig,
			 const struct sys_sigaction *act)
{
	uint64_t before = t->has_saved_mask ? t->sig_saved_mask : t->sig_mask;
	uint64_t during = t->sig_mask | act->mask;

	t->has_saved_mask = false;
	frame->restorer = (void *)wf_arch_restorer;
	frame->uc.link = NULL;
	frame->uc.sigmask = before;
	frame->uc.stack = t->altstack;
	if (t->altstack.flags & LX_SS_AUTODISARM)
		t->altstack = (struct wf_stack_t){ .flags = SS_DISABLE };
	if (!(act->flags & SA_NODEFER))
		during |= lx_bit(sig);
	during &= ~(lx_bit(SIGKILL) | lx_bit(SIGSTOP));
	wf_store_seq_cst(&t->sig_shown_mask, during);
	wf_store_seq_cst(&t->sig_mask, during);
	if (wf_self_kthread())
		WF_TRACE(wf_self_kthread(), WF_EV_HANDLER, sig, act->handler);
}

/* Could the frame not be written, the stack is gone: die as Linux does. */
static bool is_writable(void *at, size_t bytes)
{
	const uint64_t zero = 0;

	return wf_arch_copy(at, &zero, sizeof(zero)) == 0 &&
	       wf_arch_copy((char *)at + bytes - sizeof(zero), &zero, sizeof(zero)) == 0;
}

static void frame_is_unwritable(void)
{
	struct wf_siginfo info = { .signo = SIGSEGV, .code = SI_KERNEL };

	default_action(SIGSEGV, &info);
}

/*
 * Deliver one signal to the context uc, which is not on the way of the new frame: build the frame and edit uc
 * so that resuming it starts the handler. False: nothing was pending.
 */
static bool deliver_to_context(struct lx_thread *t, struct wf_ucontext *uc)
{
	struct wf_siginfo info;
	struct sys_sigaction act;
	struct wf_sigframe *frame;
	size_t fp_bytes = wf_sigframe_fp_bytes(uc);
	void *fp;
	int sig;

	do {
		sig = next_signal(t, &info, &act);
		if (sig && act.handler == SIG_DFL)
			default_action(sig, &info);
	} while (sig && act.handler == SIG_DFL);
	if (!sig)
		return false;
	frame = wf_sigframe_place(handler_stack(t, &act, uc->reg[WF_UC_RSP]), fp_bytes, &fp);
	if (!is_writable(frame, uc->reg[WF_UC_RSP] > (uintptr_t)frame &&
						uc->reg[WF_UC_RSP] - (uintptr_t)frame < (1 << 16)
					? sizeof(*frame) + fp_bytes
					: sizeof(*frame)))
		frame_is_unwritable();
	frame->uc = *uc;
	frame->info = info;
	if (fp)
		__builtin_memcpy(fp, uc->fpstate, fp_bytes);
	frame->uc.fpstate = fp;
	if (lx_gate.in_pool(uc->reg[WF_UC_RIP]))
		frame->uc.reg[WF_UC_RIP] = lx_gate.from_tramp(uc->reg[WF_UC_RIP]);
	finish_frame(t, frame, sig, &act);
	uc->reg[WF_UC_RIP] = (uint64_t)act.handler;
	uc->reg[WF_UC_RSP] = (uint64_t)frame;
	uc->reg[WF_UC_RDI] = (uint64_t)sig;
	uc->reg[WF_UC_RSI] = (uint64_t)&frame->info;
	uc->reg[WF_UC_RDX] = (uint64_t)&frame->uc;
	uc->reg[WF_UC_RAX] = 0;
	uc->reg[WF_UC_EFL] &= ~0x500ull; /* direction and trap flags are clear in a handler */
	wf_sigframe_reset_fp(uc);
	return true;
}

/* Hook of the kick: the program's own code was interrupted at uc. */
bool lx_signal_interrupted(struct wf_thread *base, void *context)
{
	struct wf_ucontext *uc = context;
	struct lx_thread *t = lx_of(base);

	if (lx_gate.in_pool(uc->reg[WF_UC_RIP]) && !lx_gate.from_tramp(uc->reg[WF_UC_RIP]))
		return false;
	if (wf_load_relaxed(&base->attention) & WF_ATT_SIGNAL) {
		(void)wf_fetch_and(&base->attention, ~WF_ATT_SIGNAL);
		while (deliver_to_context(t, uc))
			;
	}
	return true;
}

/* Hook of resumption: a preempted thread goes on through uc. */
void lx_signal_resuming(struct wf_thread *base, void *context)
{
	(void)wf_fetch_and(&base->attention, ~WF_ATT_RESCHED);
	(void)lx_signal_interrupted(base, context);
}

extern char wf_arch_gate_exit_begin[], wf_arch_gate_exit_last[], wf_arch_gate_exit_end[];
extern char wf_arch_raw_call_begin[], wf_arch_raw_call_end[], wf_arch_raw_call_interrupted[],
	wf_arch_raw_call_not_made[];
extern char wf_arch_restorer_check[], wf_arch_restorer_tail[], wf_arch_restorer_end[];

/* Hook of the kick inside the runtime: three places must not be passed with the attention word set. */
void lx_signal_in_runtime(void *context)
{
	struct wf_ucontext *uc = context;
	uint64_t rip = uc->reg[WF_UC_RIP];

	if (!wf_load_seq_cst(&wf_self()->attention))
		return;
	if (rip >= (uint64_t)wf_arch_raw_call_begin && rip < (uint64_t)wf_arch_raw_call_end) {
		uc->reg[WF_UC_RIP] = (uint64_t)(uc->reg[WF_UC_RCX] ? wf_arch_raw_call_interrupted
								   : wf_arch_raw_call_not_made);
	} else if (rip >= (uint64_t)wf_arch_gate_exit_begin &&
		   rip < (uint64_t)wf_arch_gate_exit_end) {
		if (rip == (uint64_t)wf_arch_gate_exit_last)
			uc->reg[WF_UC_RSP] -= WF_FRAME_BYTES + WF_RED_ZONE;
		uc->reg[WF_UC_RIP] = (uint64_t)wf_arch_gate_exit_begin;
	} else if (rip >= (uint64_t)wf_arch_restorer_tail && rip < (uint64_t)wf_arch_restorer_end) {
		uc->reg[WF_UC_RIP] = (uint64_t)wf_arch_restorer_check;
	}
}

/* A call that a filter of the program trapped, as the kernel leaves it: rax is its number. */
static void show_trapped_call(struct wf_frame *f, struct wf_siginfo *info)
{
	if (info->signo != SIGSYS || info->code <= 0)
		return;
	f->rax = f->nr;
	info->fault.addr = f->next;
}

/*
 * The gate's exit: the call is over (f->rax is its result) or was interrupted (rax is -ERESTART*). Runs one
 * handler, which returns to the call's end or to the call itself; or sets f up to do so right away.
 */
void lx_signal_exit(struct wf_frame *f)
{
	struct lx_thread *t = lx_self();
	long ret = (long)f->rax;
	bool is_interrupted = ret <= -ERESTARTSYS && ret >= -ERESTART_RESTARTBLOCK;
	uintptr_t site = f->next - SYSCALL_BYTES;
	struct sys_sigaction act;
	struct wf_siginfo info;
	struct wf_sigframe *frame;
	bool restarts;
	void *fp;
	int sig;

	do {
		sig = next_signal(t, &info, &act);
		if (sig && act.handler == SIG_DFL)
			default_action(sig, &info);
	} while (sig && act.handler == SIG_DFL);
	if (!sig) {
		if (t->has_saved_mask) {
			t->has_saved_mask = false;
			lx_signal_set_mask(t, t->sig_saved_mask);
		}
		if (is_interrupted) {
			f->rax = f->nr;
			f->resume = lx_gate.to_tramp(site);
		}
		return;
	}
	show_trapped_call(f, &info);
	restarts = is_interrupted &&
		   (ret == -ERESTARTNOINTR || (ret == -ERESTARTSYS && act.flags & SA_RESTART));
	if (is_interrupted && !restarts)
		f->rax = (uint64_t)-EINTR;
	frame = wf_sigframe_place(handler_stack(t, &act, wf_frame_sp(f)), WF_LEGACY_FP_BYTES, &fp);
	/*
	 * On the program's own stack the new frame would cover f and this very function: go on below. The gap
	 * is our own depth, a few hundred bytes.
	 */
	if ((uintptr_t)frame < wf_frame_sp(f) && wf_frame_sp(f) - (uintptr_t)frame < (1 << 16))
		frame = wf_sigframe_place((uintptr_t)__builtin_frame_address(0) - 1024,
					  WF_LEGACY_FP_BYTES, &fp);
	if (!is_writable(frame, sizeof(*frame)))
		frame_is_unwritable();
	wf_sigframe_store_legacy_fp(fp);
	frame->info = info;
	frame->uc = (struct wf_ucontext){
		.flags = UC_FLAGS,
		.fpstate = fp,
		.reg = {
			[WF_UC_R8] = f->r8, [WF_UC_R9] = f->r9, [WF_UC_R10] = f->r10,
			[WF_UC_R11] = RFLAGS_USER, [WF_UC_R12] = f->r12, [WF_UC_R13] = f->r13,
			[WF_UC_R14] = f->r14, [WF_UC_R15] = f->r15, [WF_UC_RDI] = f->rdi,
			[WF_UC_RSI] = f->rsi, [WF_UC_RBP] = f->rbp, [WF_UC_RBX] = f->rbx,
			[WF_UC_RDX] = f->rdx, [WF_UC_RAX] = restarts ? f->nr : f->rax,
			[WF_UC_RCX] = f->next, [WF_UC_RSP] = wf_frame_sp(f),
			[WF_UC_RIP] = restarts ? site : f->next,
			[WF_UC_EFL] = RFLAGS_USER, [WF_UC_CSGSFS] = CSGSFS_USER,
		},
	};
	finish_frame(t, frame, sig, &act);
	if (lx_signal_is_wanted(t))
		(void)wf_fetch_or(&t->base.attention, WF_ATT_SIGNAL);
	wf_arch_enter_handler(frame, act.handler, sig, &frame->info, &frame->uc);
}

/* What the frame says, unless that is wrong or the thread goes on on the stack that it has. */
static void restore_altstack(struct lx_thread *t, const struct wf_ucontext *uc)
{
	int mode = uc->stack.flags & ~LX_SS_AUTODISARM;

	if (lx_altstack_state(&t->altstack, uc->reg[WF_UC_RSP]) == SS_ONSTACK)
		return;
	if (mode == SS_DISABLE)
		t->altstack = (struct wf_stack_t){ .flags = uc->stack.flags };
	else if ((mode == 0 || mode == SS_ONSTACK) && uc->stack.size >= lx.min_sigstack)
		t->altstack = uc->stack;
}

/*
 * A handler returned; uc is its frame on the program's stack. Afterwards the kernel restores uc: make it a
 * context that it may restore on this kernel thread.
 */
void wf_linux_sigreturn(struct wf_ucontext *uc)
{
	struct wf_kthread *k = wf_self_kthread();
	struct lx_thread *t;

	if (!k)
		/* a child forked by the handler: native, its mask and stack are in uc as they are */
		return;
	t = lx_of(k->cur);
	/* The check in gate.S comes back here when attention was set meanwhile: the first pass said so in link. */
	if (uc->link != (void *)uc) {
		uc->link = uc;
		restore_altstack(t, uc);
		lx_signal_set_mask(t, uc->sigmask);
		uc->reg[WF_UC_RIP] = lx_gate.to_tramp(uc->reg[WF_UC_RIP]);
	}
	if (wf_load_seq_cst(&t->base.attention) & WF_ATT_RESCHED) {
		(void)wf_fetch_and(&t->base.attention, ~WF_ATT_RESCHED);
		wf_yield();
		k = wf_self_kthread();
	}
	if (wf_load_seq_cst(&t->base.attention) & WF_ATT_SIGNAL) {
		(void)wf_fetch_and(&t->base.attention, ~WF_ATT_SIGNAL);
		lx_signal_deliver_at_return(t, uc);
		k = wf_self_kthread();
	}
	uc->sigmask = wf_worker_sigmask();
	uc->stack = (struct wf_stack_t){ .sp = k->altstack, .size = WF_ALTSTACK_BYTES };
}

/*
 * The next handler of a row: its frame belongs where uc is, so that a storm of signals does not eat the
 * stack. uc moves to a save area first.
 */
void lx_signal_deliver_at_return(struct lx_thread *t, struct wf_ucontext *uc)
{
	void *area = wf_slab_get(&wf_rt.save_areas);
	struct wf_ucontext *saved = area ? wf_sigframe_save(area, uc) : NULL;
	uint64_t *reg;
	struct {
		uint64_t sp, handler, sig, info, uc;
	} start;

	if (!saved) {
		(void)wf_fetch_or(&t->base.attention, WF_ATT_SIGNAL);
		return;
	}
	/* This function's own frame lies below uc, where the new frame of the same size does not reach. */
	if (!deliver_to_context(t, saved)) {
		wf_slab_put(&wf_rt.save_areas, area);
		return;
	}
	if (lx_signal_is_wanted(t))
		(void)wf_fetch_or(&t->base.attention, WF_ATT_SIGNAL);
	reg = saved->reg;
	start = (typeof(start)){ reg[WF_UC_RSP], reg[WF_UC_RIP], reg[WF_UC_RDI], reg[WF_UC_RSI],
				 reg[WF_UC_RDX] };
	wf_slab_put(&wf_rt.save_areas, area);
	wf_arch_enter_handler((void *)start.sp, (void *)start.handler, (long)start.sig,
			      (void *)start.info, (void *)start.uc);
}

extern char wf_arch_copy_begin[], wf_arch_copy_end[], wf_arch_copy_fault[];
extern char wf_arch_load32_begin[], wf_arch_load32_end[], wf_arch_cas32_begin[],
	wf_arch_cas32_end[];

static bool is_user_access(uint64_t rip)
{
	return (rip >= (uint64_t)wf_arch_copy_begin && rip < (uint64_t)wf_arch_copy_end) ||
	       (rip >= (uint64_t)wf_arch_load32_begin && rip < (uint64_t)wf_arch_load32_end) ||
	       (rip >= (uint64_t)wf_arch_cas32_begin && rip < (uint64_t)wf_arch_cas32_end);
}

/*
 * A real call that we made for t raised a signal: SIGSYS by a filter that the program installed. It is the
 * program's call, so the thread takes it when it leaves the gate.
 */
static bool take_from_call(struct lx_thread *t, int sig, const struct wf_siginfo *info,
			   struct wf_ucontext *uc)
{
	void *handler = lx.action[sig].handler;

	if (!t || (sig != SIGSYS && uc->reg[WF_UC_RIP] != (uint64_t)wf_arch_raw_call_end))
		return false;
	if (handler == SIG_DFL || handler == SIG_IGN || t->sig_mask & lx_bit(sig)) {
		struct wf_siginfo copy = *info;

		default_action(sig, &copy); /* forced: neither ignored nor put off */
	}
	lx_signal_push_front(t, sig, info);
	(void)wf_fetch_or(&t->base.attention, WF_ATT_SIGNAL);
	uc->reg[WF_UC_RAX] = (uint64_t)-ENOSYS;
	return true;
}

/* A synchronous fault, on the kernel thread's alternate stack. */
void lx_signal_on_fault(int sig, struct wf_siginfo *info, void *context)
{
	struct wf_ucontext *uc = context;
	struct wf_kthread *k = wf_self_kthread();
	struct lx_thread *t = k && k->cur ? lx_of(k->cur) : NULL;
	struct sys_sigaction act = lx.action[sig], dfl = { 0 };

	if (is_user_access(uc->reg[WF_UC_RIP])) {
		uc->reg[WF_UC_RIP] = (uint64_t)wf_arch_copy_fault;
		return;
	}
	/* sent by somebody, not a fault: the kernel found a thread that does not block it */
	if (info->code <= 0 && t) {
		lx_signal_process(sig, info);
		return;
	}
	if (wf_in_own_text(uc->reg[WF_UC_RIP]) && take_from_call(t, sig, info, uc))
		return;
	if (!t || (wf_in_own_text(uc->reg[WF_UC_RIP]) && !lx_gate.in_pool(uc->reg[WF_UC_RIP])) ||
	    act.handler == SIG_DFL || act.handler == SIG_IGN || t->sig_mask & lx_bit(sig)) {
		/* No handler may run: the default action at the faulting instruction itself, when we return. */
		(void)sys_sigaction(sig, &dfl, NULL);
		return;
	}
	lx_signal_push_front(t, sig, info);
	(void)deliver_to_context(t, uc);
}
