// SPDX-License-Identifier: Apache-2.0
/*
 * Dispatch: from the gate to the handler of a system call, and real calls that may block.
 */
#include "linux/abi.h"
#include "linux/bind.h"
#include "linux/calls.h"
#include "sched/direct.h"
#include "sched/rescue.h"
#include "sched/shuffle.h"
#include "sched/timers.h"

#include <linux/fcntl.h>
#include <linux/futex.h>
#include <linux/prctl.h>

#ifndef PR_SET_MDWE
#define PR_SET_MDWE 65
#endif

struct lx_gate_ops lx_gate;

long wf_arch_raw_call(long nr, const long args[6], const uint32_t *attention);

/*
 * A kick that is meant for this thread turns the real call into -EINTR, whatever the kernel would do for a
 * handler: the decision is ours, by the program's own SA_RESTART. A signal that came before the call began is
 * as one that came before the program made it: its handler runs, then the call. Most calls never end with EINTR.
 */
enum how {
	CALL_WATCHED,
	CALL_HANDED_ON,
	CALL_LAZY,
	CALL_REST /* watched, and made whatever came before it */
};

static long call_once(struct lx_thread *self, long nr, const long args[6], enum how how)
{
	static const uint32_t nothing;
	long ret;

	self->base.wait_what = (uint64_t)nr;
	self->base.wait_since = wf_load_relaxed(&wf_rt.coarse_now);
	if (how == CALL_HANDED_ON)
		wf_fetch_add(&lx.nr_held, 1u);
	if (how == CALL_LAZY)
		wf_call_enter_lazy();
	else
		wf_call_enter(how == CALL_HANDED_ON);
	/* Not before the hand-off, in which the kernel thread may sleep, too: /proc would show that it waits. */
	wf_store_relaxed(&self->base.wait_kind, (uint8_t)WF_WAIT_CALL);
	ret = wf_arch_raw_call(nr, args, how == CALL_REST ? &nothing : &self->base.attention);
	if (how == CALL_HANDED_ON)
		wf_fetch_sub(&lx.nr_held, 1u);
	if (WF_UNLIKELY(ret < 0))
		lx_signal_take_raised(ret);
	wf_store_relaxed(&self->base.wait_kind, (uint8_t)WF_WAIT_NONE);
	wf_call_leave();
	return ret;
}

/* Bits of the attention word that would end the call at once; a kernel thread of its own it gets right here. */
static void forget_resched(struct lx_thread *self)
{
	const uint32_t bits = WF_ATT_RESCHED | WF_ATT_BIND;
	uint32_t seen = wf_load_relaxed(&self->base.attention) & bits;

	if (seen)
		seen = wf_fetch_and(&self->base.attention, ~bits);
	if (WF_UNLIKELY(seen & WF_ATT_BIND))
		lx_bind_rethink(self, true);
}

/*
 * One that may last for ever, has done nothing when it is interrupted, and waits, made again, until the same moment: it may
 * be ended when no kernel thread is left for others.
 */
static bool repeats(long nr, const long args[6], enum how how, enum lx_restart restart)
{
	switch (nr) {
	case __NR_open: /* of a FIFO */
	case __NR_openat:
	case __NR_semop:
	case __NR_msgrcv:
	case __NR_msgsnd:
		return true;
	case __NR_semtimedop:
		return !args[3];
	case __NR_futex:
		return !args[3] || (args[1] & FUTEX_CMD_MASK) != FUTEX_WAIT;
	default:
		return how == CALL_HANDED_ON && restart == LX_RESTART_SYS;
	}
}

static long call_through(long nr, const long args[6], enum how how, enum lx_restart restart)
{
	struct lx_thread *self = lx_self();

	for (;;) {
		long ret;

		forget_resched(self);
		wf_store_relaxed(&self->base.repeats_call, repeats(nr, args, how, restart));
		ret = call_once(self, nr, args, how);
		wf_store_relaxed(&self->base.repeats_call, false);
		if (ret != -EINTR && ret != -ERESTARTNOINTR)
			return ret;
		if (!lx_signal_is_waiting(self)) {
			wf_rescue_let_others_run();
			continue;
		}
		if (ret == -ERESTARTNOINTR)
			return ret;
		return restart == LX_RESTART_SYS ? -ERESTARTSYS : -EINTR;
	}
}

long lx_blocking_call(long nr, const long args[6], bool certain, enum lx_restart restart)
{
	return call_through(nr, args, certain ? CALL_HANDED_ON : CALL_WATCHED, restart);
}

long lx_blocking_rest(long nr, const long args[6])
{
	long ret;

	do /* a kick just before it sends us back, whatever word was looked at */
		ret = call_once(lx_self(), nr, args, CALL_REST);
	while (ret == -ERESTARTNOINTR);
	return ret;
}

long lx_disk(struct wf_frame *f)
{
	long args[6] = { (long)WF_ARG0(f), (long)WF_ARG1(f), (long)WF_ARG2(f),
			 (long)WF_ARG3(f), (long)WF_ARG4(f), (long)WF_ARG5(f) };

	return call_through((long)f->nr, args, CALL_LAZY, LX_RESTART_SYS);
}

/* Interrupted: by a signal for the program, or because it lasted: -EINTR. */
static long broken(struct lx_thread *self, long ret)
{
	if (ret != -EINTR && ret != -ERESTARTNOINTR)
		return ret;
	if (!lx_signal_is_waiting(self))
		return -EINTR;
	return ret == -EINTR ? -ERESTARTSYS : ret;
}

long lx_breakable_call(long nr, const long args[6])
{
	struct lx_thread *self = lx_self();
	long ret;

	forget_resched(self);
	wf_store_relaxed(&self->base.breaks_call, true);
	ret = call_once(self, nr, args, CALL_WATCHED);
	wf_store_relaxed(&self->base.breaks_call, false);
	return broken(self, ret);
}

bool lx_direct_wait(int set, void *events, long nr_events, int64_t *until, long *out)
{
	struct lx_thread *self = lx_self();
	long args[6] = { set, (long)events, nr_events };
	struct __kernel_timespec left;

	forget_resched(self);
	if (!wf_direct_begin(WF_WAIT_FD, (uint64_t)set, until))
		return false;
	if (*until != WF_NEVER) {
		int64_t ns = WF_MAX(*until - wf_now(), 0);

		left = (struct __kernel_timespec){ ns / WF_SEC, ns % WF_SEC };
		args[3] = (long)&left;
	}
	*out = wf_arch_raw_call(__NR_epoll_pwait2, args, &self->base.attention);
	wf_direct_end();
	return true;
}

#define BRIEF_NS WF_MS

static void end_brief_call(struct wf_timer *timer)
{
	wf_call_break(container_of(timer, struct wf_thread, timer));
}

long lx_brief(struct wf_frame *f)
{
	long args[6] = { (long)WF_ARG0(f), (long)WF_ARG1(f), (long)WF_ARG2(f),
			 (long)WF_ARG3(f), (long)WF_ARG4(f), (long)WF_ARG5(f) };
	struct lx_thread *self = lx_self();
	int64_t deadline = lx_deadline_in(BRIEF_NS);
	long ret;

	if (wf_is_bound(&self->base)) /* its kernel thread has nothing else to do */
		return lx_blocking(f, true);
	forget_resched(self);
	wf_timer_init(&self->base.timer, end_brief_call);
	if (wf_wheel_add(&wf_rt.wheel, &self->base.timer, deadline))
		wf_timers_first(deadline);
	wf_direct_see_to_poller(); /* the thread does not park, and its timer is near */
	ret = call_once(self, (long)f->nr, args, CALL_HANDED_ON);
	wf_wheel_cancel(&wf_rt.wheel, &self->base.timer);
	return broken(self, ret);
}

static enum lx_restart restart_of(long nr)
{
	switch (nr) {
	case __NR_semop:
	case __NR_semtimedop:
	case __NR_msgrcv:
	case __NR_msgsnd:
	case __NR_io_getevents:
	case __NR_clock_nanosleep:
		return LX_RESTART_NEVER;
	default:
		return LX_RESTART_SYS;
	}
}

long lx_blocking(struct wf_frame *f, bool certain)
{
	long args[6] = { (long)WF_ARG0(f), (long)WF_ARG1(f), (long)WF_ARG2(f),
			 (long)WF_ARG3(f), (long)WF_ARG4(f), (long)WF_ARG5(f) };

	return lx_blocking_call((long)f->nr, args, certain, restart_of((long)f->nr));
}

long lx_breakable_on(struct wf_frame *f, int fd)
{
	long args[6] = { fd,
			 (long)WF_ARG1(f),
			 (long)WF_ARG2(f),
			 (long)WF_ARG3(f),
			 (long)WF_ARG4(f),
			 (long)WF_ARG5(f) };

	return lx_breakable_call((long)f->nr, args);
}

/* Calls that nobody answers: whatever they do, the monitor sees to it that nobody waits for them. */
static long pass_through(struct wf_frame *f)
{
	return lx_blocking(f, false);
}

_Static_assert(ERESTARTSYS == WF_RESTART_FIRST && ERESTART_RESTARTBLOCK == WF_RESTART_LAST,
	       "gate.S relies on it");

typedef long (*handler_fn)(struct wf_frame *f);

static handler_fn handler_of(const struct wf_kthread *k, uint64_t nr)
{
	handler_fn handler = nr < LX_MAX_NR ? lx_table[nr].handler : NULL;

	if (WF_UNLIKELY(k->bound))
		handler = lx_bind_handler((long)nr, handler);
	return handler ? handler : pass_through;
}

static long enter_shuffled(struct wf_frame *f)
{
	struct wf_kthread *k;
	long ret;

	wf_shuffle_enter();
	k = wf_own_kthread();
	wf_store_relaxed(&k->call_nr, (uint32_t)f->nr);
	ret = handler_of(k, f->nr)(f);
	wf_shuffle_leave();
	return ret;
}

/*
 * The handler is called last, and returns to the gate: on its way through the kernel a call has made the processor forget
 * where we return to, so that each level of calls above it costs a misprediction.
 */
long wf_linux_enter(struct wf_frame *f)
{
	struct wf_kthread *k = wf_own_kthread();

	k->cur->keeps_vectors = false;
	if (WF_UNLIKELY(f->resume & 1ull << WF_FRAME_KEEPS_BIT)) {
		k->cur->keeps_vectors = true;
		f->resume &= ~(1ull << WF_FRAME_KEEPS_BIT);
	}
	wf_store_relaxed(&k->call_nr, (uint32_t)f->nr);
	WF_TRACE(k, WF_EV_SYSCALL, f->nr, WF_ARG0(f));
	if (wf_is_shuffled())
		return enter_shuffled(f);
	return handler_of(k, f->nr)(f);
}

/* A handler starts from here, not from the exit: the bit would end its own waits at once. */
void wf_linux_interrupted(struct wf_frame *f)
{
	(void)wf_fetch_and(&wf_self()->attention, ~WF_ATT_SIGNAL);
	lx_signal_exit(f);
}

static bool sets_filter(const struct wf_frame *f)
{
	return f->nr == __NR_seccomp ? WF_ARG0(f) <= 1
	       : f->nr == __NR_prctl ? WF_ARG0(f) == PR_SET_SECCOMP
				     : false;
}

/*
 * A program that limits itself before its first thread. Its filter was made for the calls of plain threads,
 * and what it does not know it may answer with death: such a program stays native, and so do children of one that filters itself later. What forbids to write text
 * only from now on comes after the writing. One that serves its own page faults tells us before they begin.
 */
static long limit_self(struct wf_frame *f)
{
	long ret;

	if (f->nr == __NR_prctl && WF_ARG0(f) == PR_SET_MDWE && lx_config.prepare)
		(void)lx_config.prepare();
	ret = lx_raw(f);
	if (sets_filter(f) && ret >= 0)
		lx_stay_native(LX_WHY_FILTERED);
	if (f->nr == __NR_userfaultfd && ret >= 0)
		lx.has_userfaults = true;
	return ret;
}

/* The calls that gate.S picks out, by a kernel thread that is not ours, or not yet. */
void wf_linux_make(struct wf_frame *f)
{
	if (sets_filter(f))
		lx_filtered();
	if (f->nr == __NR_execve || f->nr == __NR_execveat) {
		lx_exec_notice(f);
		f->rax = (uint64_t)lx_raw(f);
	} else if (f->nr == __NR_clone || f->nr == __NR_clone3) {
		f->rax = (uint64_t)lx_table[f->nr].handler(f);
	} else if (wf_self_kthread() || wf_load_acquire(&wf_rt.started)) {
		f->rax = (uint64_t)lx_raw(f);
	} else {
		f->rax = (uint64_t)limit_self(f);
	}
}

/* The gate's exit found the attention word set. */
void wf_linux_attention(struct wf_frame *f)
{
	struct wf_thread *self = wf_self();
	uint32_t seen = wf_fetch_and(&self->attention,
				     ~(WF_ATT_RESCHED | WF_ATT_SIGNAL | WF_ATT_BIND));

	if (seen & WF_ATT_BIND)
		lx_bind_rethink(lx_of(self), true);
	if (seen & WF_ATT_SIGNAL)
		lx_signal_exit(f);
	if (seen & WF_ATT_RESCHED)
		wf_give_way();
}

bool lx_wants(int nr)
{
	return nr >= 0 && nr < LX_MAX_NR && lx_table[nr].handler;
}

bool lx_wants_at_start(int nr)
{
	return nr == __NR_clone || nr == __NR_clone3 || nr == __NR_prctl || nr == __NR_seccomp ||
	       nr == __NR_userfaultfd || nr == __NR_execve || nr == __NR_execveat;
}

int64_t lx_deadline_in(int64_t ns)
{
	int64_t now = wf_now();

	return ns > WF_NEVER - now ? WF_NEVER - 1 : now + WF_MAX(ns, 0);
}

static long read_timespec(const void *user, int64_t *out_ns)
{
	struct __kernel_timespec ts;

	if (wf_arch_copy(&ts, user, sizeof(ts)) < 0)
		return -EFAULT;
	if (ts.tv_sec < 0 || ts.tv_nsec < 0 || ts.tv_nsec >= WF_SEC)
		return -EINVAL;
	*out_ns = ts.tv_sec > WF_NEVER / WF_SEC - 1 ? WF_NEVER - 1
						    : ts.tv_sec * WF_SEC + ts.tv_nsec;
	return 0;
}

long lx_deadline_relative(const void *user_timespec, int64_t *out_deadline)
{
	int64_t ns = 0;
	long ret = read_timespec(user_timespec, &ns);

	if (ret == 0)
		*out_deadline = lx_deadline_in(ns);
	return ret;
}

long lx_deadline_absolute(const void *user_timespec, int clock, int64_t *out_deadline)
{
	int64_t at = 0, now = 0;
	long ret = read_timespec(user_timespec, &at);

	if (ret < 0)
		return ret;
	if (clock != 1) {
		ret = sys_clock_read(clock, &now);
		if (ret < 0)
			return ret;
		*out_deadline = at <= now ? 0 : lx_deadline_in(at - now);
		return 0;
	}
	*out_deadline = WF_MIN(at, WF_NEVER - 1);
	return 0;
}
