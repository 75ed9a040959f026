// SPDX-License-Identifier: Apache-2.0
/*
 * fork, vfork, posix_spawn, exec, wait: processes.
 *
 * A fork child is a plain process again: only the calling thread exists in it, as a native main thread with
 * the program's own signal mask and handlers; the runtime forgets everything until the child makes a thread.
 */
#include "arch/arch.h"
#include "io/facts.h"
#include "linux/abi.h"
#include "linux/action.h"
#include "linux/call.h"
#include "linux/calls.h"
#include "linux/deathsig.h"
#include "linux/doorbell.h"
#include "linux/everybody.h"
#include "linux/heir.h"
#include "linux/policy.h"
#include "linux/process.h"
#include "linux/ring.h"
#include "linux/scope.h"
#include "linux/signals.h"
#include "linux/sigpark.h"
#include "linux/sigqueue.h"
#include "linux/start.h"
#include "sched/bind.h"
#include "sched/insys.h"
#include "sched/kick.h"
#include "sched/peer.h"
#include "sched/preempt.h"

#include <fcntl.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <linux/wait.h>
#include <signal.h>

/* A child has this of the thread that makes it; the kernel would give it what our kernel thread has. */
struct wf_child {
	uint64_t mask;
	bool is_ours, is_nice, has_policy, has_name;
	int32_t nice, policy, priority;
	uintptr_t base; /* of the program's own in the base register */
	char name[16];
};

_Static_assert(sizeof(struct wf_child) <= WF_CHILD_BYTES, "gate.S relies on it");
_Static_assert(offsetof(struct wf_child, base) == WF_CHILD_BASE, "gate.S relies on it");

/* f is what the gate made of the call; only one of a kernel thread that is not ours is looked at. */
static struct wf_child child_of_self(const struct wf_frame *f)
{
	const struct lx_thread *self = wf_self_kthread() ? lx_self() : NULL;

	struct wf_child c = { .is_ours = self != NULL };

	if (!self) {
		c.base = wf_frame_stranger_base(f);
		return c;
	}
	c = (struct wf_child){
		.base = self->base.user_base,
		.mask = self->sig_mask,
		.is_ours = true,
		.is_nice = !lx_bind_tid(self) && self->nice != lx.base_nice,
		.has_policy = !lx_bind_tid(self) && self->policy != lx.base_policy,
		.nice = self->nice,
		.policy = (int32_t)lx_sched_plain(self->policy),
		.priority = self->priority,
		.has_name = !lx_bind_tid(self) && !wf_load_acquire(&wf_rt.is_filtered),
	};

	__builtin_memcpy(c.name, self->name, sizeof(c.name) - 1);
	return c;
}

/*
 * Around a call that makes a process. A signal that is sent to the child while it still looks like us would be taken
 * for one of ours; so it waits for the child's own mask.
 */
static void block_signals(void)
{
	const uint64_t all = ~0ull;

	(void)sys_sigprocmask(SIG_SETMASK, &all, NULL);
}

static void open_signals(void)
{
	const uint64_t mask = wf_worker_sigmask();

	(void)sys_sigprocmask(SIG_SETMASK, &mask, NULL);
}

/* The first thing that a child does, when it is not weft's any more; the mask last, since handlers may run then. */
void wf_linux_child_begin(const struct wf_child *c)
{
	if (!c->is_ours)
		return;
	if (c->has_policy)
		(void)sys3(__NR_sched_setscheduler, 0, c->policy, &c->priority);
	if (c->is_nice)
		(void)sys3(__NR_setpriority, 0, 0, c->nice);
	if (c->has_name)
		(void)sys2(__NR_prctl, PR_SET_NAME, c->name);
	(void)sys_sigprocmask(SIG_SETMASK, &c->mask, NULL);
}

/* On the stack of the thread, which waits for us. */
void wf_linux_vfork_child(void)
{
	const struct wf_child c = child_of_self(NULL);

	wf_arch_set_base(c.base);
	wf_linux_child_begin(&c);
}

static bool is_filtered(const struct lx_thread *self)
{
	return self->is_filtered || wf_load_acquire(&lx.is_filtered);
}

/* In the child of a fork: become native on the registers in f, which is where its stack ends. */
WF_NORETURN static void become_native(struct wf_frame *f, bool shares_files)
{
	const struct wf_child c = child_of_self(f);
	bool stays_native = is_filtered(lx_self());

	lx_signal_restore_kernel(lx_self());
	lx_scope_forget(lx_self());
	wf_peer_unwatch(wf_own_kthread());
	wf_arch_set_self(NULL);
	lx_forget(shares_files);
	if (stays_native)
		lx_stay_native(LX_WHY_FILTERED);
	wf_arch_set_base(c.base);
	wf_linux_child_begin(&c);
	wf_frame_answer(f, 0);
	wf_arch_gate_leave(f);
}

/* Sets our kernel thread's slack to the caller's, which a child takes over. Returns what it was. */
static long lend_slack(void)
{
	const struct lx_thread *self = lx_self();
	long own, slack = self->timer_slack_ns;

	/* The filter may know no prctl(); and if nobody has changed it, it is what our kernel threads have. */
	if (is_filtered(self) && slack == self->default_slack_ns)
		return slack;
	own = sys1(__NR_prctl, PR_GET_TIMERSLACK);
	if (own != slack)
		(void)sys2(__NR_prctl, PR_SET_TIMERSLACK, slack);
	return own;
}

static void take_slack_back(long own)
{
	if (own != lx_self()->timer_slack_ns)
		(void)sys2(__NR_prctl, PR_SET_TIMERSLACK, own);
}

static long fork_process(struct wf_frame *f, uint64_t flags)
{
	long pid, slack;

	if (!wf_self_kthread())
		return lx_raw(f);
	wf_fd_all_shared();
	slack = lend_slack();
	block_signals();
	pid = lx_raw(f);
	if (pid == 0)
		become_native(f, flags & CLONE_FILES);
	open_signals();
	take_slack_back(slack);
	return pid;
}

/* The kernel knows the structure by its size; ours may be older than the program's. */
static long clone3_bytes(const struct wf_frame *f)
{
	return (long)WF_MIN(WF_ARG1(f), sizeof(struct clone_args));
}

/*
 * A child with memory of its own that is to run on another stack: it becomes native on a copy of ours, as after
 * fork(), and then goes there.
 */
static long fork_to_stack(struct wf_frame *f, uint64_t flags, uintptr_t sp,
			  const struct clone_args *args)
{
	struct wf_frame *frame = wf_frame_at(sp);
	struct clone_args own;
	long pid, slack = lend_slack();

	wf_fd_all_shared();
	block_signals();
	if (args) {
		own = *args;
		own.stack = own.stack_size = 0;
		pid = sys2(__NR_clone3, &own, clone3_bytes(f));
	} else {
		pid = sys5(__NR_clone, WF_ARG0(f), 0, WF_ARG2(f), WF_ARG3(f), WF_ARG4(f));
	}
	if (pid == 0) {
		if (wf_arch_copy(frame, f, sizeof(*f)) < 0)
			(void)sys1(__NR_exit_group, 128 + SIGSEGV);
		become_native(frame, flags & CLONE_FILES);
	}
	open_signals();
	take_slack_back(slack);
	return pid;
}

/* By the kernel, which puts the mask there: nobody catches our faults. */
static bool is_writable(char *word)
{
	return sys_sigprocmask(SIG_BLOCK, NULL, (uint64_t *)word) == 0;
}

/*
 * A child that shares our memory and runs on a stack of its own (posix_spawn, or clone() by hand): it gets a
 * copy of the frame at the top of that stack and leaves the gate there as a foreign kernel thread.
 */
static long clone_with_stack(struct wf_frame *f, uint64_t flags, uintptr_t sp,
			     const struct clone_args *args)
{
	struct wf_frame *frame = wf_frame_at(sp);
	bool is_ours = wf_self_kthread() != NULL;
	char *start = (char *)frame - WF_CHILD_BYTES;
	const struct wf_child child = child_of_self(f);
	struct clone_args own;
	long ret, slack = 0;

	/* No stack there: the kernel refuses, or the child ends by itself. */
	if (!is_ours &&
	    !(is_writable(start) && is_writable((char *)(frame + 1) - sizeof(uint64_t))))
		return lx_raw(f);
	if (wf_arch_copy(frame, f, sizeof(*f)) < 0 ||
	    wf_arch_copy(start, &child, sizeof(child)) < 0)
		return -EFAULT;
	wf_fd_all_shared();
	if (is_ours && flags & CLONE_VM && !(flags & CLONE_VFORK))
		wf_store_relaxed(&lx.has_vm_child, true);
	if (is_ours) {
		wf_call_enter(flags & CLONE_VFORK);
		slack = lend_slack();
		block_signals();
	}
	if (args) {
		own = *args;
		own.stack_size = (uintptr_t)start - own.stack;
		ret = wf_arch_raw_clone(__NR_clone3, (long)&own, clone3_bytes(f), 0, 0, 0);
	} else {
		ret = wf_arch_raw_clone(__NR_clone, (long)flags, (long)start, (long)WF_ARG2(f),
					(long)WF_ARG3(f), (long)WF_ARG4(f));
	}
	if (is_ours) {
		open_signals();
		take_slack_back(slack);
		wf_call_leave();
	}
	return ret;
}

long lx_clone_process(struct wf_frame *f, uint64_t flags, uintptr_t sp,
		      const struct clone_args *args)
{
	wf_kthread_tie();
	if (flags & CLONE_FILES)
		wf_store_relaxed(&lx.shares_files, true);
	if ((flags & CSIGNAL) != SIGCHLD)
		wf_store_relaxed(&lx.has_clone_child, true);
	if (!sp && flags & CLONE_VM)
		return -EINVAL; /* two processes on one stack: only vfork() itself can do that */
	if (!sp)
		return fork_process(f, flags);
	if (wf_self_kthread() && !(flags & CLONE_VM))
		return fork_to_stack(f, flags, sp, args);
	return clone_with_stack(f, flags, sp, args);
}

long sysc_fork(struct wf_frame *f)
{
	wf_kthread_tie();
	return fork_process(f, 0);
}

/* vfork() is made by gate.S itself: the child borrows our stack, so no frame of ours may be live. */
void wf_linux_vfork_begin(struct wf_frame *f)
{
	(void)f;
	wf_fd_all_shared();
	wf_kthread_tie();
	wf_call_enter(true);
	block_signals();
}

void wf_linux_vfork_end(struct wf_frame *f)
{
	/* The second frame saved the result as the number. */
	wf_frame_answer(f, (long)f->nr);
	open_signals();
	wf_call_leave();
}

/* Signals that are pending for the thread go along: they are put onto the kernel thread that execs. */
static void move_pending_to_kernel(struct lx_thread *self)
{
	int tid = (int)sys0(__NR_gettid), sig;
	struct wf_siginfo info;

	while ((sig = lx_pending_take(&self->pending, ~0ull, &info)))
		if (sys4(__NR_rt_tgsigqueueinfo, wf_rt.pid, tid, sig, &info) < 0)
			(void)sys_tgkill(wf_rt.pid, tid, sig);
}

static void take_pending_back(struct lx_thread *self)
{
	const struct __kernel_timespec now = { 0, 0 };
	const uint64_t set = wf_worker_sigmask();
	struct wf_siginfo info;
	long sig;

	while ((sig = sys4(__NR_rt_sigtimedwait, &set, &info, &now, sizeof(set))) > 0)
		(void)lx_signal_post(lx_tid(self), (int)sig, &info);
}

/*
 * A kick that is pending when the new program begins would end it: nothing catches it any more. So from here on nobody
 * kicks k, the caller's: they take one to be on its way. The lock is for those who kick all the same.
 */
static void refuse_kicks(struct wf_kthread *k)
{
	lx_everybody_lock();
	for (uint32_t round = 0; wf_exchange_seq_cst(&k->kick_sent, 1u); round++)
		sys_relax(round); /* one is: its handler clears the word */
}

static void take_kicks(struct wf_kthread *k)
{
	wf_store_seq_cst(&k->kick_sent, 0u);
	lx_everybody_unlock();
	wf_kick(k); /* whoever wanted to meanwhile */
}

void lx_exec_notice(struct wf_frame *f)
{
	bool is_at = f->nr == __NR_execveat;
	int dir = is_at ? (int)WF_ARG0(f) : AT_FDCWD;

	if (lx_config.before_exec)
		lx_config.before_exec(dir, (const char *)(is_at ? WF_ARG1(f) : WF_ARG0(f)),
				      (const char *const *)(is_at ? WF_ARG3(f) : WF_ARG2(f)));
}

static long exec(struct wf_frame *f)
{
	struct lx_thread *self = lx_self();
	uint64_t mask = self->sig_mask, worker = wf_worker_sigmask();
	struct wf_kthread *k;
	long ret;

	lx_exec_notice(f);
	lx_sched_show_kernel();
	lx_heir_leave();
	/*
	 * The new program inherits the real mask, and what is pending for the process. The other kernel threads
	 * end when the call succeeds, the door too: it must not hold a signal that it is about to put back.
	 */
	lx_signal_leave();
	wf_call_enter(false);
	k = wf_own_kthread();
	lx_deathsig_to_own(self);
	refuse_kicks(k);
	move_pending_to_kernel(self);
	(void)sys_sigprocmask(SIG_SETMASK, &mask, NULL);
	ret = lx_raw(f);
	(void)sys_sigprocmask(SIG_SETMASK, &worker, NULL);
	take_pending_back(self);
	take_kicks(k);
	if (!wf_is_bound(&self->base))
		lx_deathsig_to_door(self);
	wf_call_leave();
	lx_signal_stay();
	lx_heir_stay();
	return ret;
}

long sysc_execve(struct wf_frame *f)
{
	return exec(f);
}

long sysc_execveat(struct wf_frame *f)
{
	return exec(f);
}

/*
 * SIGCHLD of a child, and what the child sent before it ended, are pending before it can be waited for: natively
 * their handlers have run when the call returns, and many a program counts on it.
 */
static long waited(long ret, bool has_child)
{
	if (ret >= 0 && has_child)
		lx_door_pass();
	return ret;
}

/*
 * __WNOTHREAD means the children that the calling thread has made: the kernel would take the kernel thread for it,
 * and miss them. So it is any child of the process, but for a thread that has a kernel thread of its own.
 */
static int wait_options(uint64_t options)
{
	return (int)(wf_is_bound(wf_self()) ? options : options & ~(uint64_t)__WNOTHREAD);
}

/* Only these show the heir. */
static bool is_nobodys_parent(int which, int id, int options)
{
	if (!(options & (__WALL | __WCLONE)))
		return false;
	return which == P_PID ? lx_heir_is(id) : which == P_ALL && lx_heir_is_only_child(options);
}

/*
 * A child that has ended already costs no hand-off. The ring only tells that there is something to be found: the call
 * that takes it, and counts what the child has used, is the real one.
 */
long sysc_wait4(struct wf_frame *f)
{
	int pid = (int)WF_ARG0(f), options = wait_options(WF_ARG2(f));
	int which = pid == -1 ? P_ALL : pid > 0 ? P_PID : P_PGID;
	long args[6] = { pid, (long)WF_ARG1(f), options, (long)WF_ARG3(f) };
	long ret;

	do {
		ret = sys4(__NR_wait4, pid, args[1], options | WNOHANG, args[3]);
		if (ret == 0 && is_nobodys_parent(which, pid, options))
			ret = -ECHILD;
		if (ret || options & WNOHANG)
			break;
		ret = lx_ring_child(which, which == P_PGID ? -pid : WF_MAX(pid, 0),
				    options | WEXITED);
		if (ret == -ENOSYS)
			ret = lx_blocking_call(__NR_wait4, args, true, LX_RESTART_SYS);
	} while (ret == 0);
	return waited(ret, ret > 0);
}

/* As the kernel does it: these fields and no others. */
static long show_child(void *user, const struct wf_siginfo *info)
{
	const size_t head = offsetof(struct wf_siginfo, pad),
		     body = offsetof(struct wf_siginfo, words);

	if (!user || (wf_arch_copy(user, info, head) == 0 &&
		      wf_arch_copy((char *)user + body, info->words, 3 * sizeof(int)) == 0))
		return 0;
	return -EFAULT;
}

long sysc_waitid(struct wf_frame *f)
{
	int which = (int)WF_ARG0(f), options = wait_options(WF_ARG3(f));
	long args[6] = { which, (long)WF_ARG1(f), (long)WF_ARG2(f), options, (long)WF_ARG4(f) };
	struct wf_siginfo info;
	long ret;

	for (;;) {
		info = (struct wf_siginfo){ 0 };
		ret = sys5(__NR_waitid, which, args[1], &info, options | WNOHANG, args[4]);
		if (ret == 0 && !info.signo && is_nobodys_parent(which, (int)args[1], options))
			ret = -ECHILD;
		if (ret < 0 || info.signo || options & WNOHANG)
			break;
		ret = which == P_PIDFD ? -ENOSYS : lx_ring_child(which, (int)args[1], options);
		if (ret == -ENOSYS) {
			ret = lx_blocking_call(__NR_waitid, args, true, LX_RESTART_SYS);
			return waited(ret, ret == 0);
		}
		if (ret < 0)
			break;
	}
	if (show_child((void *)WF_ARG2(f), &info) < 0)
		ret = -EFAULT;
	return waited(ret, info.signo);
}
