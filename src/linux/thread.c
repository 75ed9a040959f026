// SPDX-License-Identifier: Apache-2.0
/*
 * clone, exit, and the calls that name threads: how a thread comes, goes, and is called.
 *
 * A clone with CLONE_THREAD makes a weft thread: the saved registers are copied to the top of the new stack
 * and the child leaves the gate through the copy, so the call returns 0 there, on the new stack.
 */
#include "linux/thread.h"
#include "arch/arch.h"
#include "linux/abi.h"
#include "linux/bind.h"
#include "linux/calls.h"
#include "linux/deathsig.h"
#include "linux/ending.h"
#include "linux/futex_pi.h"
#include "linux/futex_table.h"
#include "linux/policy.h"
#include "linux/process.h"
#include "linux/robust.h"
#include "linux/signals.h"
#include "linux/start.h"
#include "linux/scope.h"
#include "sched/park.h"
#include "sys/rseq.h"

#include <errno.h>
#include <linux/sched.h>

struct clone_request {
	uint64_t flags;
	uintptr_t stack_low, sp; /* low end (0: unknown) and top */
	uint32_t *parent_tid, *child_tid;
	uintptr_t tls;
};

static void inherit(struct lx_thread *t, const struct lx_thread *parent)
{
	t->futex = (struct lx_futex_wait){ 0 };
	wf_list_init(&t->futex.link);
	wf_list_init(&t->exit_link);
	t->child_tid = t->joined = NULL;
	t->ended = NULL;
	t->robust_head = NULL;
	t->rseq = (struct lx_rseq){ 0 };
	t->stack_low = t->stack_high = 0;
	__builtin_memcpy(t->name, parent->name, sizeof(t->name));
	__builtin_memcpy(t->affinity, parent->affinity, sizeof(t->affinity));
	t->has_affinity = parent->has_affinity;
	lx_sched_inherit(t, parent);
	t->timer_slack_ns = t->default_slack_ns = parent->timer_slack_ns;
	t->has_ioprio = false;
	t->has_death_signal = false;
	t->is_filtered = parent->is_filtered;
	t->base.has_own_files = parent->base.has_own_files;
	/* Then a look at the flag: pairs with the exchange in lx_bind_all_for_faults(). */
	(void)wf_exchange_seq_cst(&t->binds, wf_load_relaxed(&parent->binds) &
						     ~(LX_BIND_URING | LX_BIND_ASKED));
	if (WF_UNLIKELY(wf_load_seq_cst(&lx.has_userfaults))) {
		(void)wf_fetch_or(&t->binds, LX_BIND_FAULT);
		if (!wf_is_bound(&parent->base))
			(void)wf_fetch_or(&t->base.attention, WF_ATT_BIND);
	}
	lx_signal_thread_init(t, parent);
}

static long make_thread(const struct wf_frame *f, const struct clone_request *r)
{
	struct lx_thread *parent = lx_self(), *t;
	struct wf_thread *base = wf_thread_new();
	struct wf_frame *frame = wf_frame_at(r->sp);
	uint32_t tid;

	if (!base)
		return -EAGAIN;
	t = lx_of(base);
	inherit(t, parent);
	if (wf_arch_copy(frame, f, sizeof(*f)) < 0) {
		wf_thread_free(base);
		return -EFAULT;
	}
	/* The parent's own kernel thread hands down what the kernel keeps of it. */
	if (wf_is_bound(&parent->base) && t->binds && wf_bind_new(base) < 0) {
		wf_thread_free(base);
		return -EAGAIN;
	}
	wf_frame_answer(frame, 0);
	t->stack_low = r->stack_low;
	t->stack_high = r->stack_low ? r->sp : 0;
	base->user_base = parent->base.user_base;
	base->tls = r->flags & CLONE_SETTLS ? r->tls : wf_arch_get_tls();
	base->sp = wf_arch_make_gate_context(frame);
	tid = base->tid;
	if (r->flags & CLONE_PARENT_SETTID)
		(void)wf_arch_copy(r->parent_tid, &tid, sizeof(tid));
	if (r->flags & CLONE_CHILD_SETTID)
		(void)wf_arch_copy(r->child_tid, &tid, sizeof(tid));
	if (r->flags & CLONE_CHILD_CLEARTID) {
		t->child_tid = r->child_tid;
		lx_exit_word_add(t);
	}
	wf_fetch_add(&lx.nr_threads, 1u);
	WF_TRACE(wf_self_kthread(), WF_EV_SPAWN, tid, 0);
	base->home = wf_self_kthread()->worker;
	wf_store_release(&base->state, WF_READY);
	wf_worker_ready(base);
	return tid;
}

/* A caller that tries again and again keeps no thread from running whose end makes room. */
static long make_thread_or_yield(const struct wf_frame *f, const struct clone_request *r)
{
	long ret = make_thread(f, r);

	if (ret == -EAGAIN)
		wf_yield();
	return ret;
}

void wf_linux_thread_started(void)
{
	wf_worker_finish_switch(wf_self_kthread());
}

static bool is_thread(uint64_t flags)
{
	return (flags & (CLONE_THREAD | CLONE_VM)) == (CLONE_THREAD | CLONE_VM);
}

/* The first thread starts the runtime. 1; 0: stay native; -errno: as the kernel would have refused it. */
static long may_make_threads(const struct wf_frame *f)
{
	if (wf_load_acquire(&wf_rt.started))
		return wf_self_kthread() != NULL;
	return lx_start(wf_frame_stranger_base(f));
}

long sysc_clone(struct wf_frame *f)
{
	struct clone_request r = {
		.flags = WF_ARG0(f),
		.sp = WF_ARG1(f),
		.parent_tid = (uint32_t *)WF_ARG2(f),
		.child_tid = (uint32_t *)WF_ARG3(f),
		.tls = WF_ARG4(f),
	};
	long ret = 0;

	if (is_thread(r.flags) && r.sp)
		ret = may_make_threads(f);
	if (ret)
		return ret < 0 ? ret : make_thread_or_yield(f, &r);
	return lx_clone_process(f, r.flags, r.sp, NULL);
}

/* By the kernel, which looks at a set before it finds that it does not know what to do with it. */
static bool is_readable(uintptr_t word)
{
	return sys_sigprocmask(-1, (const uint64_t *)word, NULL) != -EFAULT;
}

/* Nobody catches our faults before the first thread, nor on a kernel thread that is not weft's. At most two pages. */
static bool may_be_read(uintptr_t args, size_t bytes)
{
	return wf_self_kthread() ||
	       (is_readable(args) && is_readable(args + bytes - sizeof(uint64_t)));
}

long sysc_clone3(struct wf_frame *f)
{
	struct clone_args args = { 0 };
	size_t bytes = WF_ARG1(f);
	struct clone_request r;
	long ret = 0;

	if (bytes < CLONE_ARGS_SIZE_VER0)
		return -EINVAL;
	if (bytes > WF_PAGE)
		return -E2BIG;
	if (!may_be_read(WF_ARG0(f), bytes))
		return -EFAULT;
	if (wf_arch_copy(&args, (const void *)WF_ARG0(f), WF_MIN(bytes, sizeof(args))) < 0)
		return -EFAULT;
	/* Headers newer than ours: as in the kernel, what we do not know must not be asked for. */
	for (size_t i = sizeof(args); i < bytes; i++) {
		char c = 0;

		if (wf_arch_copy(&c, (const char *)WF_ARG0(f) + i, 1) < 0)
			return -EFAULT;
		if (c)
			return -E2BIG;
	}
	/* The rest of what the kernel refuses is a process to us, so the kernel sees it. */
	if (args.stack && !args.stack_size)
		return -EINVAL;
	if (is_thread(args.flags) && (args.exit_signal || !(args.flags & CLONE_SIGHAND)))
		return -EINVAL;
	r = (struct clone_request){
		.flags = args.flags,
		.stack_low = args.stack,
		.sp = args.stack + args.stack_size,
		.parent_tid = (uint32_t *)args.parent_tid,
		.child_tid = (uint32_t *)args.child_tid,
		.tls = args.tls,
	};
	if (is_thread(r.flags) && args.stack)
		ret = may_make_threads(f);
	if (ret)
		return ret < 0 ? ret : make_thread_or_yield(f, &r);
	return lx_clone_process(f, args.flags | args.exit_signal, args.stack ? r.sp : 0, &args);
}

WF_NORETURN static void end_process(int status)
{
	/* The kernel knows no list but main's: locks shared with other processes would stay held. */
	lx_robust_walk_all(lx_futex_owner_died);
	lx_ending_record(0);
	for (;;)
		(void)sys1(__NR_exit_group, status);
}

/* The flag before the look at the hook: pairs with watch_main() of native/shell.c. */
static void end_main(void)
{
	void (*hook)(void);

	wf_store_seq_cst(&lx.main_has_ended, true);
	hook = wf_load_seq_cst(&lx_config.on_main_end);
	if (hook)
		hook();
}

/* The status of a process whose threads have all ended by themselves is that of the last. */
long sysc_exit(struct wf_frame *f)
{
	struct lx_thread *self = lx_self();
	struct wf_kthread *k = wf_own_kthread();

	if (self == lx.main)
		end_main();
	lx_robust_walk(self, lx_futex_owner_died);
	lx_deathsig_end(self);
	lx_scope_thread_end(self);
	lx_signal_thread_exit(self);
	/* Before it is counted no more: who is alone then asks nothing of its kernel thread. */
	if (wf_is_bound(&self->base))
		wf_store_release(&k->is_ending, true);
	if (wf_fetch_sub(&lx.nr_threads, 1u) == 1)
		end_process((int)WF_ARG0(f));
	WF_TRACE(k, WF_EV_EXIT, 0, 0);
	wf_store_release(&self->base.state, WF_DEAD);
	wf_worker_switch_last(k, WF_PREV_DEAD);
}

/* Called by the successor, on another stack: from now on libc may reuse or unmap the dead one's. */
void lx_thread_exited(struct wf_thread *base)
{
	struct lx_thread *t = lx_of(base);

	lx_futex_thread_ended(t);
	if (t->child_tid)
		lx_exit_word_remove(t);
	if (t->ended)
		wf_load_acquire (&lx_config.on_thread_gone)(t->ended);
	if (t != lx.main)
		wf_thread_free(base);
}

long sysc_exit_group(struct wf_frame *f)
{
	end_process((int)WF_ARG0(f));
}

long sysc_gettid(struct wf_frame *f)
{
	(void)f;
	return lx_tid(lx_self());
}

long sysc_set_tid_address(struct wf_frame *f)
{
	struct lx_thread *self = lx_self();

	if (self->child_tid) {
		/* Withdraw the old word without clearing it. */
		lx_exit_word_withdraw(self);
		self->child_tid = NULL;
	}
	self->child_tid = (uint32_t *)WF_ARG0(f);
	if (self->child_tid)
		lx_exit_word_add(self);
	return lx_tid(self);
}

/*
 * The kernel would register the area with a kernel thread, which a weft thread leaves at any moment. So the
 * area keeps its initial cpu_id of -1 and readers fall back to getcpu; but the call succeeds, since libc
 * treats a failure in a thread whose creator was registered as fatal. Another caller gets the kernel's errors.
 */
long sysc_rseq(struct wf_frame *f)
{
	struct lx_thread *self = lx_self();
	struct lx_rseq asked = { WF_ARG0(f), (uint32_t)WF_ARG1(f), (uint32_t)WF_ARG3(f) };
	uint32_t flags = (uint32_t)WF_ARG2(f);
	bool is_same = self->rseq.area == asked.area && self->rseq.bytes == asked.bytes;

	if (flags & ~(uint32_t)SYS_RSEQ_UNREGISTER)
		return -EINVAL;
	if (flags || self->rseq.area) {
		if (!self->rseq.area || !is_same)
			return -EINVAL;
		if (self->rseq.signature != asked.signature)
			return -EPERM;
		if (!flags)
			return -EBUSY;
		self->rseq = (struct lx_rseq){ 0 };
		return 0;
	}
	if (asked.bytes < SYS_RSEQ_BYTES || asked.area % SYS_RSEQ_BYTES)
		return -EINVAL;
	if (asked.area >= 1ull << 47)
		return -EFAULT;
	self->rseq = asked;
	return 0;
}
