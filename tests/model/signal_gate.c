// SPDX-License-Identifier: Apache-2.0
/*
 * Gate and program of the signal machine: what gate.S does at the edge between the program and the runtime, with the
 * same windows, and threads that cross it; see signal_machine.h.
 *
 * Mutations, by the name of the function of gate.S, handler.S or switch.S: "test", it does not look at the attention word;
 * "window", a kick behind the test does not send it back.
 */
#include "arch/arch.h"
#include "arch/x86_64/sigframe.h"
#include "linux/calls.h"
#include "signal_machine.h"
#include "signal_user.h"
#include "linux/call.h"
#include "linux/dispatch.h"
#include "linux/sigdeliver.h"
#include "linux/signals.h"
#include "linux/sigwant.h"
#include "linux/table.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define MAX_USERS 6
#define MAX_KTHREADS 16
#define USER_STACK_BYTES (8ul << 10)

/* Where the program is: no address of ours. */
#define SITE 0x1000ull /* the system call instruction */
#define BEHIND 0x1002ull
#define CODE 0x2000ull

/* signal_windows.S */
extern char wf_arch_gate_exit_begin[], wf_arch_raw_call_begin[], wf_arch_raw_call_interrupted[],
	wf_arch_restorer_tail[], wf_arch_enter_check[], wf_arch_sigreturn_check[];

struct enter {
	void *sp, *handler, *info, *uc;
	long sig;
};

/* A thread's registers, as far as anybody looks. */
struct user {
	struct lx_thread *t;
	void (*program)(void *);
	bool is_in_program;
	uint64_t rip, rcx, sp; /* rip: where the runtime is, while it is there */
	struct enter enter;
	void *jump[5];
	char stack[USER_STACK_BYTES] WF_ALIGNED(64);
	/* Handlers have their frames here: below a call's they would lie on the call's own, since C code is elsewhere. */
	char altstack[USER_STACK_BYTES] WF_ALIGNED(64);
};

struct kick_context {
	void *sp; /* of the interrupted side */
	struct wf_ucontext uc;
};

static struct {
	struct user users[MAX_USERS];
	uint32_t nr_users;
	void *altstack[MAX_KTHREADS];
	bool has_handled;
} gate;

static struct user *user_of(struct wf_thread *t)
{
	for (uint32_t i = 0; i < gate.nr_users; i++)
		if (&gate.users[i].t->base == t)
			return &gate.users[i];
	abort();
}

static struct user *self_user(void)
{
	return user_of(wf_self());
}

/* --- the kick --- */

static void run_handlers(struct user *u, struct wf_ucontext *out_uc);

static void kick_entry(void *arg)
{
	struct kick_context *c = arg;
	struct wf_siginfo info = { .signo = WF_SIG_KICK, .code = SI_TKILL };

	wf_preempt_on_kick(WF_SIG_KICK, &info, &c->uc);
	wf_arch_switch_last(c->sp);
}

static void set_enter(struct user *u, const uint64_t *reg)
{
	u->enter = (struct enter){ .sp = (void *)reg[WF_UC_RSP],
				   .handler = (void *)reg[WF_UC_RIP],
				   .sig = (long)reg[WF_UC_RDI],
				   .info = (void *)reg[WF_UC_RSI],
				   .uc = (void *)reg[WF_UC_RDX] };
}

static bool is_program(uint64_t rip)
{
	return rip == SITE || rip == BEHIND || rip == CODE;
}

static void interrupted_in_program(struct user *u)
{
	struct kick_context c = { .uc = { .reg = { [WF_UC_RIP] = CODE,
						   [WF_UC_RSP] = u->sp,
						   [WF_UC_RBX] = (uint64_t)&c } } };

	u->is_in_program = false; /* where another kick would find us */
	wf_arch_switch(&c.sp, wf_arch_make_context(gate.altstack[wf_self_kthread()->index],
						   kick_entry, &c));
	/* The kernel has restored c.uc, maybe on another kernel thread. */
	model_open_interrupts();
	u->sp = c.uc.reg[WF_UC_RSP];
	if (!is_program(c.uc.reg[WF_UC_RIP])) {
		set_enter(u, c.uc.reg);
		run_handlers(u, &c.uc);
		u->sp = c.uc.reg[WF_UC_RSP];
	}
	u->is_in_program = true;
	model_expect(c.uc.reg[WF_UC_RIP] == CODE, "the program goes on somewhere else");
}

/* At a point of the virtual CPU, with further kicks blocked. */
static void on_interrupt(void)
{
	struct wf_siginfo info = { .signo = WF_SIG_KICK, .code = SI_TKILL };
	struct wf_kthread *k = wf_self_kthread();
	struct wf_ucontext uc = { .reg = { [WF_UC_RIP] = (uint64_t)wf_park } };
	struct user *u = k->cur ? user_of(k->cur) : NULL;

	if (u && u->is_in_program) {
		interrupted_in_program(u);
		return;
	}
	if (u) {
		uc.reg[WF_UC_RIP] = u->rip;
		uc.reg[WF_UC_RCX] = u->rcx;
	}
	wf_preempt_on_kick(WF_SIG_KICK, &info, &uc);
	if (u)
		u->rip = uc.reg[WF_UC_RIP];
}

/* --- the gate --- */

/* One step in such a place: true when a kick sent us out of it. */
static bool is_sent_back(struct user *u, const char *name, char *window, uint64_t rcx)
{
	const uint64_t rip = model_is_mutated(name, "window") ? (uint64_t)wf_park
							      : (uint64_t)window + 1;
	bool was_sent;

	u->rip = rip;
	u->rcx = rcx;
	model_step();
	was_sent = u->rip != rip;
	u->rip = (uint64_t)wf_park;
	return was_sent;
}

static bool has_attention(const char *name, const uint32_t *word)
{
	return wf_load_relaxed(word) && !model_is_mutated(name, "test");
}

void wf_arch_enter_handler(void *sp, void *handler, long sig, void *info, void *uc)
{
	struct user *u = self_user();

	for (;;) {
		if (has_attention(__func__, &u->t->base.attention)) {
			if (wf_linux_handler_attention(sp, handler, (int)sig))
				continue;
			break;
		}
		if (!is_sent_back(u, __func__, wf_arch_enter_check, 0))
			break;
	}
	u->enter = (struct enter){
		.sp = sp, .handler = handler, .info = info, .uc = uc, .sig = sig
	};
	__builtin_longjmp(u->jump, 1);
}

void wf_arch_sigreturn(void *sp, const uint32_t *attention)
{
	struct wf_ucontext *uc = sp;
	struct user *u = self_user();
	struct kick_context *c;

	do
		if (has_attention("wf_arch_sigreturn", attention))
			return;
	while (is_sent_back(u, "wf_arch_sigreturn", wf_arch_sigreturn_check, 0));
	c = (void *)uc->reg[WF_UC_RBX];
	c->uc = *uc;
	wf_arch_switch_last(c->sp);
}

/* A handler's frame was left: false when another handler is to be entered first. */
__attribute__((noinline)) static bool restore(struct user *u, struct wf_ucontext *uc,
					      struct wf_ucontext *out_uc)
{
	if (__builtin_setjmp(u->jump))
		return false;
	do
		wf_linux_sigreturn(uc);
	while (has_attention("wf_arch_restorer", &u->t->base.attention) ||
	       is_sent_back(u, "wf_arch_restorer", wf_arch_restorer_tail, 0));
	*out_uc = *uc;
	return true;
}

static void run_handlers(struct user *u, struct wf_ucontext *out_uc)
{
	do {
		struct enter e = u->enter;

		u->sp = (uint64_t)e.sp;
		gate.has_handled = true;
		u->is_in_program = true;
		((void (*)(int, void *, void *))e.handler)((int)e.sig, e.info, e.uc);
		u->is_in_program = false;
		if (restore(u, &((struct wf_sigframe *)e.sp)->uc, out_uc)) {
			if (is_program(out_uc->reg[WF_UC_RIP]))
				return;
			set_enter(u, out_uc->reg);
		}
	} while (true);
}

/* Through the gate once: false when a handler is to be entered. */
__attribute__((noinline)) static bool pass_gate(struct user *u, struct wf_frame *f)
{
	if (__builtin_setjmp(u->jump))
		return false;
	f->rax = (uint64_t)wf_linux_enter(f);
	if ((long)f->rax <= -WF_RESTART_FIRST && (long)f->rax >= -WF_RESTART_LAST)
		wf_linux_interrupted(f);
	for (;;) {
		if (has_attention("wf_arch_gate_exit", &u->t->base.attention))
			wf_linux_attention(f);
		else if (!is_sent_back(u, "wf_arch_gate_exit", wf_arch_gate_exit_begin, 0))
			return true;
	}
}

long signal_call(long nr, uint64_t a, uint64_t b, uint64_t c)
{
	struct user *u = self_user();
	uint64_t sp = u->sp;
	struct wf_ucontext uc;

	do {
		struct wf_frame *f = wf_frame_at(sp);

		*f = (struct wf_frame){ .nr = (uint64_t)nr,
					.rax = (uint64_t)nr,
					.rdi = a,
					.rsi = b,
					.rdx = c,
					.r10 = 8,
					.next = BEHIND,
					.resume = BEHIND };
		if (nr == __NR_rt_sigsuspend)
			f->rsi = 8;
		u->is_in_program = false;
		u->rip = (uint64_t)wf_park;
		if (pass_gate(u, f)) {
			uc.reg[WF_UC_RIP] = f->resume;
			uc.reg[WF_UC_RAX] = f->rax;
			uc.reg[WF_UC_RSP] = sp;
		} else {
			run_handlers(u, &uc);
		}
		model_expect(uc.reg[WF_UC_RSP] == sp, "the stack pointer is another one");
		u->sp = sp;
		u->is_in_program = true;
		model_expect(uc.reg[WF_UC_RIP] != SITE || uc.reg[WF_UC_RAX] == (uint64_t)nr,
			     "another call is made than was interrupted");
		/* None of those that are made here has such a result. */
		model_expect(uc.reg[WF_UC_RIP] == SITE || uc.reg[WF_UC_RAX] != (uint64_t)nr,
			     "a call that was not made returns its number");
	} while (uc.reg[WF_UC_RIP] == SITE);
	return (long)uc.reg[WF_UC_RAX];
}

static uintptr_t same(uintptr_t rip)
{
	return rip;
}

static bool never(uintptr_t rip)
{
	(void)rip;
	return false;
}

static bool is_there(void *arg)
{
	(void)arg;
	return gate.has_handled;
}

long wf_arch_raw_call(long nr, const long args[6], const uint32_t *attention);
long wf_arch_raw_call(long nr, const long args[6], const uint32_t *attention)
{
	struct user *u = self_user();

	(void)nr;
	(void)args;
	if (has_attention(__func__, attention) ||
	    is_sent_back(u, __func__, wf_arch_raw_call_begin, 0))
		return -ERESTARTNOINTR;
	for (;;) {
		u->rip = (uint64_t)wf_arch_raw_call_begin;
		u->rcx = 1;
		if (model_wait(is_there, NULL, WF_NEVER) ||
		    u->rip == (uint64_t)wf_arch_raw_call_interrupted)
			break;
	}
	u->rip = (uint64_t)wf_park;
	return gate.has_handled ? 0 : -EINTR;
}

void wf_arch_restorer(void);
void wf_arch_restorer(void)
{
}

long wf_arch_copy(void *dst, const void *src, size_t n)
{
	memcpy(dst, src, n);
	return 0;
}

/* A wait that ends with a signal only, as those of futex.c. */
static long sysc_park(struct wf_frame *f)
{
	struct lx_thread *self = lx_self();

	(void)f;
	for (;;) {
		wf_park_begin(WF_INTR, WF_WAIT_FUTEX, 0);
		if (gate.has_handled) {
			(void)wf_park_abort();
			return 0;
		}
		(void)wf_park(WF_NEVER);
		if (lx_signal_is_waiting(self))
			return -ERESTARTSYS;
	}
}

static long sysc_nothing(struct wf_frame *f)
{
	(void)f;
	return 0;
}

static long sysc_read_for_ever(struct wf_frame *f)
{
	return lx_blocking(f, false);
}

static long sysc_yield(struct wf_frame *f)
{
	(void)f;
	wf_yield();
	return 0;
}

#define CALL(nr, fn) [nr] = { fn }
const struct lx_call lx_table[LX_MAX_NR] = {
	CALL(__NR_rt_sigprocmask, sysc_rt_sigprocmask),
	CALL(__NR_rt_sigtimedwait, sysc_rt_sigtimedwait),
	CALL(__NR_rt_sigsuspend, sysc_rt_sigsuspend),
	CALL(__NR_tgkill, sysc_tgkill),
	CALL(__NR_kill, sysc_kill),
	CALL(__NR_rt_sigqueueinfo, sysc_rt_sigqueueinfo),
	CALL(__NR_getpid, sysc_nothing),
	CALL(NR_PARK, sysc_park),
	CALL(NR_READ, sysc_read_for_ever),
	CALL(NR_YIELD, sysc_yield),
};

/* --- programs --- */

static void run_program(void *arg)
{
	struct user *u = arg;

	(void)signal_call(__NR_getpid, 0, 0, 0); /* a thread begins by leaving the gate */
	u->program(u->t);
	u->is_in_program = false;
	lx_signal_thread_exit(u->t);
}

struct lx_thread *signal_gate_thread(void (*program)(void *), uint64_t mask)
{
	struct user *u = &gate.users[gate.nr_users++];

	if (gate.nr_users > MAX_USERS)
		abort();
	u->t = lx_of(machine_thread(run_program, u));
	lx_signal_thread_init(u->t, NULL);
	u->t->sig_mask = u->t->sig_shown_mask = mask;
	u->t->altstack = (struct wf_stack_t){ .sp = u->altstack, .size = USER_STACK_BYTES };
	u->program = program;
	u->sp = (uint64_t)u->stack + USER_STACK_BYTES - 256;
	u->rip = (uint64_t)wf_park;
	u->rcx = 0;
	u->is_in_program = false;
	return u->t;
}

void signal_gate_add_kthread(uint32_t index)
{
	gate.altstack[index] = model_stack_top();
}

void signal_gate_reset(void)
{
	gate.nr_users = 0;
	gate.has_handled = false;
	lx_gate = (struct lx_gate_ops){ same, same, never };
	model_on_interrupt(on_interrupt);
}

void signal_step(void)
{
	model_step();
}

void signal_spin(const int *flag, int n)
{
	while (__atomic_load_n(flag, __ATOMIC_RELAXED) != n)
		model_pause();
}

long signal_send(struct lx_thread *t, int sig)
{
	return signal_call(__NR_tgkill, (uint64_t)wf_rt.pid, lx_tid(t), (uint64_t)sig);
}

long signal_kill(int sig)
{
	return signal_call(__NR_kill, (uint64_t)wf_rt.pid, (uint64_t)sig, 0);
}

long signal_mask(int how, uint64_t set)
{
	return signal_call(__NR_rt_sigprocmask, (uint64_t)how, (uint64_t)&set, 0);
}

long signal_wait(uint64_t set, int64_t timeout_ns)
{
	const struct __kernel_timespec ts = { timeout_ns / WF_SEC, timeout_ns % WF_SEC };

	return signal_call(__NR_rt_sigtimedwait, (uint64_t)&set, 0,
			   timeout_ns >= 0 ? (uint64_t)&ts : 0);
}

long signal_suspend(uint64_t mask)
{
	return signal_call(__NR_rt_sigsuspend, (uint64_t)&mask, 8, 0);
}
