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
#include "linux/action.h"
#include "linux/altstack.h"
#include "linux/bind.h"
#include "linux/scope.h"
#include "linux/sigdefault.h"
#include "linux/sigdeliver.h"
#include "linux/signals.h"
#include "linux/sigpace.h"
#include "linux/sigqueue.h"
#include "linux/sigwant.h"
#include "mem/stack.h"
#include "sched/preempt.h"

#include <signal.h>

#define BUILDERS_BYTES 2048 /* the depth of the functions that build a frame below themselves */
#define SPARE_BYTES                                                                                \
	6144 /* of a handler's stack, for its calls and return and for another handler on top */

/* Take the next signal that has an effect, with the action to run. 0: nothing left. */
static int next_signal(struct lx_thread *t, struct wf_siginfo *info, struct sys_sigaction *act)
{
	int sig;

	while ((sig = lx_signal_take(t, ~t->sig_mask, info))) {
		wf_spin_lock(&lx.action_lock);
		*act = lx.action[sig];
		if (act->handler != SIG_DFL && act->handler != SIG_IGN && act->flags & SA_RESETHAND)
			lx_action_reset(sig);
		wf_spin_unlock(&lx.action_lock);
		if (act->handler == SIG_IGN ||
		    (act->handler == SIG_DFL && lx_signal_default_ignores(sig)))
			continue;
		return sig;
	}
	return 0;
}

/*
 * The frame on the alternate stack of t. The kernel needs none of a handler's stack for its calls; we do, and where the
 * stack is just large enough for the kernel's frame, the registers of the FPU go elsewhere. There is one such place
 * for a thread, as there is one frame at the top of its stack; what lies there has as long a life.
 */
static struct wf_sigframe *place_on_alternate(struct lx_thread *t, size_t fp_bytes, void **out_fp)
{
	const uintptr_t low = (uintptr_t)t->altstack.sp, high = low + t->altstack.size;
	struct wf_sigframe *frame = wf_sigframe_place(high, fp_bytes, out_fp);

	if (!fp_bytes || (uintptr_t)frame >= low + SPARE_BYTES ||
	    t->altstack.flags & LX_SS_AUTODISARM)
		return frame;
	if (!t->fp_room)
		t->fp_room = wf_slab_get(&wf_rt.save_areas);
	if (t->fp_room) {
		frame = wf_sigframe_place(high, 0, out_fp);
		*out_fp = t->fp_room;
	}
	return frame;
}

/*
 * Where the handler's frame goes: the alternate stack if asked for and not there already, else below sp. A
 * frame that would cover the functions that build it goes below them: here is the frame address of the
 * outermost, 0 if they run on another stack. NULL: it would leave the alternate stack at the lower end.
 */
static struct wf_sigframe *place_frame(struct lx_thread *t, const struct sys_sigaction *act,
				       uintptr_t sp, uintptr_t here, size_t fp_bytes, void **out_fp)
{
	const bool is_there = lx_is_on_alternate(&t->altstack, sp);
	const bool enters = act->flags & SA_ONSTACK && t->altstack.size && !is_there;
	struct wf_sigframe *frame;

	if (enters) {
		sp = (uintptr_t)t->altstack.sp + t->altstack.size;
		frame = place_on_alternate(t, fp_bytes, out_fp);
	} else {
		sp -= WF_RED_ZONE;
		frame = wf_sigframe_place(sp, fp_bytes, out_fp);
	}
	if (here && (uintptr_t)frame < here && sp > here - BUILDERS_BYTES)
		frame = wf_sigframe_place(here - BUILDERS_BYTES, fp_bytes, out_fp);
	if ((enters || is_there) && (uintptr_t)frame <= (uintptr_t)t->altstack.sp)
		return NULL;
	return frame;
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
	if (!(act->flags & SA_NODEFER))
		during |= lx_bit(sig);
	lx_signal_set_mask(t, during);
	if (t->altstack.flags & LX_SS_AUTODISARM)
		t->altstack = (struct wf_stack_t){ .flags = SS_DISABLE };
	if (wf_self_kthread())
		WF_TRACE(wf_self_kthread(), WF_EV_HANDLER, sig, act->handler);
}

/* A frame that cannot be written is a fault instead: see frame_is_unwritable(). */
static bool is_writable(void *at, size_t bytes)
{
	const uint64_t zero = 0;

	return wf_arch_copy(at, &zero, sizeof(zero)) == 0 &&
	       wf_arch_copy((char *)at + bytes - sizeof(zero), &zero, sizeof(zero)) == 0;
}

/*
 * The signal is lost, and SIGSEGV comes instead, whose handler may have another stack. Without one it kills,
 * and so it does when it was SIGSEGV itself.
 */
static void frame_is_unwritable(struct lx_thread *t, int sig)
{
	struct wf_siginfo info = { .signo = SIGSEGV, .code = SI_KERNEL };
	void *handler = lx.action[SIGSEGV].handler;

	if (sig == SIGSEGV || handler == SIG_DFL || handler == SIG_IGN ||
	    t->sig_mask & lx_bit(SIGSEGV))
		lx_signal_default_action(SIGSEGV, &info);
	lx_pending_push_front(&t->pending, SIGSEGV, &info);
}

/* The next signal with a handler, and where its frame goes. NULL: nothing was pending. */
static struct wf_sigframe *next_frame(struct lx_thread *t, uintptr_t sp, uintptr_t here,
				      size_t fp_bytes, struct wf_siginfo *info,
				      struct sys_sigaction *act, void **out_fp)
{
	struct wf_sigframe *frame;
	char *end;
	int sig;

	while ((sig = next_signal(t, info, act))) {
		if (act->handler == SIG_DFL) {
			lx_signal_default_action(sig, info);
			continue;
		}
		frame = place_frame(t, act, sp, here, fp_bytes, out_fp);
		end = *out_fp && *out_fp != t->fp_room ? (char *)*out_fp + fp_bytes
						       : (char *)(frame + 1);
		if (frame && is_writable(frame, (size_t)(end - (char *)frame)))
			return frame;
		frame_is_unwritable(t, sig);
	}
	return NULL;
}

/*
 * Deliver one signal to the context uc, which is not on the way of the new frame: build the frame and edit uc
 * so that resuming it starts the handler. False: nothing was pending.
 */
static bool deliver_to_context(struct lx_thread *t, struct wf_ucontext *uc, uintptr_t here)
{
	struct wf_siginfo info;
	struct sys_sigaction act;
	struct wf_sigframe *frame;
	size_t fp_bytes = wf_sigframe_fp_bytes(uc);
	void *fp;

	frame = next_frame(t, wf_uc_sp(uc), here, fp_bytes, &info, &act, &fp);
	if (!frame)
		return false;
	frame->uc = *uc;
	frame->info = info;
	if (fp)
		__builtin_memcpy(fp, uc->fpstate, fp_bytes);
	frame->uc.fpstate = fp;
	if (lx_gate.in_pool(wf_uc_pc(uc)))
		wf_uc_set_pc(&frame->uc, lx_gate.from_tramp(wf_uc_pc(uc)));
	finish_frame(t, frame, info.signo, &act);
	wf_sigframe_enter(uc, frame, act.handler, info.signo);
	return true;
}

/* The bit goes first, each time, since a handler's mask may raise it: where it is up, somebody is about to look. */
void lx_signal_deliver_all(struct lx_thread *t, struct wf_ucontext *uc, uintptr_t here)
{
	do
		(void)wf_fetch_and(&t->base.attention, ~WF_ATT_SIGNAL);
	while (deliver_to_context(t, uc, here));
}

/* Hook of the kick: the program's own code was interrupted at uc. */
bool lx_signal_interrupted(struct wf_thread *base, void *context)
{
	struct wf_ucontext *uc = context;
	struct lx_thread *t = lx_of(base);

	if (lx_gate.in_pool(wf_uc_pc(uc)) && !lx_gate.from_tramp(wf_uc_pc(uc)))
		return false;
	if (WF_UNLIKELY(wf_load_relaxed(&base->attention) & WF_ATT_BIND)) {
		(void)wf_fetch_and(&base->attention, ~WF_ATT_BIND);
		lx_bind_rethink(t, false);
	}
	if (wf_load_relaxed(&base->attention) & WF_ATT_SIGNAL)
		lx_signal_deliver_all(t, uc, 0);
	return true;
}

/*
 * Start the handler that uc is about to enter, on top of whose frame those of the other pending signals go: as
 * in the kernel, all have their frames before the first runs, and that is the one of the last.
 */
WF_NORETURN static void enter(struct lx_thread *t, struct wf_ucontext *uc, void *area,
			      uintptr_t here)
{
	struct wf_uc_handler h;

	lx_signal_deliver_all(t, uc, here);
	h = wf_uc_handler(uc);
	wf_slab_put(&wf_rt.save_areas, area);
	wf_arch_enter_handler(h.sp, h.handler, h.sig, h.info, h.uc);
}

/* Hook of resumption: a preempted thread goes on through uc. */
void lx_signal_resuming(struct wf_thread *base, void *context)
{
	(void)wf_fetch_and(&base->attention, ~WF_ATT_RESCHED);
	(void)lx_signal_interrupted(base, context);
}

/* Hook of the kick inside the runtime: places that must not be passed with the attention word set. */
void lx_signal_in_runtime(void *context)
{
	if (wf_load_seq_cst(&wf_self()->attention))
		wf_arch_leave_window(context);
}

/* A call that a filter of the program trapped, as the kernel leaves it. */
static void show_trapped_call(struct wf_frame *f, struct wf_siginfo *info)
{
	if (info->signo != SIGSYS || info->code <= 0)
		return;
	wf_frame_untouch(f);
	info->fault.addr = f->next;
}

/* There are more: frame's handler is entered after theirs. Without memory they come when it returns. */
static void enter_with_others(struct lx_thread *t, struct wf_sigframe *frame, int sig,
			      const struct sys_sigaction *act, uintptr_t here)
{
	void *area = wf_slab_get(&wf_rt.save_areas);
	struct wf_ucontext *uc;

	if (!area) {
		(void)wf_fetch_or(&t->base.attention, WF_ATT_SIGNAL);
		return;
	}
	uc = wf_sigframe_save(area, &frame->uc);
	wf_sigframe_enter(uc, frame, act->handler, sig);
	enter(t, uc, area, here);
}

/*
 * Something came after the last look, while frame's handler is about to be entered: it is to be asked again whether
 * more came. False: there is no memory, and what came waits until the handler returns.
 */
bool wf_linux_handler_attention(struct wf_sigframe *frame, void *handler, int sig)
{
	struct lx_thread *t = lx_self();
	const struct sys_sigaction act = { .handler = handler };
	uint32_t seen = wf_fetch_and(&t->base.attention,
				     ~(WF_ATT_RESCHED | WF_ATT_SIGNAL | WF_ATT_BIND));

	if (seen & WF_ATT_BIND)
		lx_bind_rethink(t, true);
	if (seen & WF_ATT_RESCHED)
		wf_yield();
	if (!(seen & WF_ATT_SIGNAL) || !lx_signal_is_wanted(t))
		return true;
	enter_with_others(t, frame, sig, &act, (uintptr_t)__builtin_frame_address(0));
	return false;
}

/*
 * The gate's exit: the call is over (f has its result) or was interrupted (that is -ERESTART*). Runs one
 * handler, which returns to the call's end or to the call itself; or sets f up to do so right away.
 */
void lx_signal_exit(struct wf_frame *f)
{
	struct lx_thread *t = lx_self();
	long ret = wf_frame_result(f), error;
	bool is_interrupted = ret <= -ERESTARTSYS && ret >= -ERESTART_RESTARTBLOCK;
	uintptr_t site = wf_frame_site(f);
	struct sys_sigaction act;
	struct wf_siginfo info;
	struct wf_sigframe *frame;
	/* Made again already, since somebody else had taken the signal, when another one came. */
	bool restarts = f->resume == lx_gate.to_tramp(site), keeps = t->base.keeps_vectors;
	void *fp;
	int sig;

	frame = next_frame(t, wf_frame_sp(f), (uintptr_t)__builtin_frame_address(0),
			   keeps ? wf_sigframe_whole_fp_bytes() : WF_LEGACY_FP_BYTES, &info, &act,
			   &fp);
	if (!frame) {
		if (t->has_saved_mask) {
			t->has_saved_mask = false;
			lx_signal_set_mask(t, t->sig_saved_mask);
		}
		error = is_interrupted && ret != -ERESTARTNOINTR ? lx_scope_error(f) : 0;
		if (WF_UNLIKELY(error)) {
			wf_frame_answer(f, error);
		} else if (is_interrupted) {
			wf_frame_untouch(f);
			f->resume = lx_gate.to_tramp(site);
		}
		return;
	}
	show_trapped_call(f, &info);
	if (is_interrupted)
		restarts = ret == -ERESTARTNOINTR ||
			   (ret == -ERESTARTSYS && act.flags & SA_RESTART);
	if (is_interrupted && !restarts) {
		error = lx_scope_error(f);
		wf_frame_answer(f, error ? error : -EINTR);
	}
	sig = info.signo;
	if (keeps)
		wf_sigframe_store_whole_fp(fp);
	else
		wf_sigframe_store_legacy_fp(fp);
	frame->info = info;
	wf_sigframe_of_call(&frame->uc, f, restarts, keeps, fp);
	finish_frame(t, frame, sig, &act);
	if (lx_signal_is_wanted(t))
		enter_with_others(t, frame, sig, &act, (uintptr_t)__builtin_frame_address(0));
	wf_arch_enter_handler(frame, act.handler, sig, &frame->info, &frame->uc);
}

/*
 * The next handler of a row: its frame belongs where uc is, so that a storm of signals does not eat the
 * stack. uc moves to a save area first.
 */
static void deliver_at_return(struct lx_thread *t, struct wf_ucontext *uc)
{
	void *area = wf_slab_get(&wf_rt.save_areas);
	struct wf_ucontext *saved = area ? wf_sigframe_save(area, uc) : NULL;
	const uintptr_t here = (uintptr_t)__builtin_frame_address(0);

	if (!saved) {
		(void)wf_fetch_or(&t->base.attention, WF_ATT_SIGNAL);
		return;
	}
	if (!deliver_to_context(t, saved, here)) {
		wf_slab_put(&wf_rt.save_areas, area);
		return;
	}
	enter(t, saved, area, here);
}

/*
 * A handler of ours returned; uc is its frame on the program's stack. Afterwards the kernel restores uc: make it a
 * context that it may restore on this kernel thread.
 */
void wf_linux_sigreturn(struct wf_ucontext *uc)
{
	struct wf_kthread *k = wf_self_kthread();
	struct lx_thread *t = lx_of(k->cur);

	/* The check in handler.S comes back here when attention was set meanwhile: the first pass said so in link. */
	if (uc->link != (void *)uc) {
		uc->link = uc;
		lx_altstack_restore(t, &uc->stack, wf_uc_sp(uc));
		lx_signal_set_mask(t, uc->sigmask);
		wf_uc_set_pc(uc, lx_gate.to_tramp(wf_uc_pc(uc)));
	}
	if (wf_load_seq_cst(&t->base.attention) & WF_ATT_BIND) {
		(void)wf_fetch_and(&t->base.attention, ~WF_ATT_BIND);
		lx_bind_rethink(t, true);
		k = wf_self_kthread();
	}
	if (wf_load_seq_cst(&t->base.attention) & WF_ATT_RESCHED) {
		(void)wf_fetch_and(&t->base.attention, ~WF_ATT_RESCHED);
		wf_give_way();
		k = wf_self_kthread();
	}
	if (wf_load_seq_cst(&t->base.attention) & WF_ATT_SIGNAL) {
		(void)wf_fetch_and(&t->base.attention, ~WF_ATT_SIGNAL);
		if (!lx_signal_is_timers(&container_of(uc, struct wf_sigframe, uc)->info) ||
		    !lx_signal_pace(t))
			deliver_at_return(t, uc);
		k = wf_self_kthread();
	}
	uc->sigmask = wf_worker_sigmask();
	uc->stack = (struct wf_stack_t){ .sp = k->altstack, .size = WF_ALTSTACK_BYTES };
}
