// SPDX-License-Identifier: Apache-2.0
/*
 * Real calls that may block.
 */
#include "linux/abi.h"
#include "linux/bind.h"
#include "linux/call.h"
#include "linux/deadline.h"
#include "linux/scope.h"
#include "linux/signals.h"
#include "linux/sigwant.h"
#include "linux/table.h"
#include "sched/clock.h"
#include "sched/direct.h"
#include "sched/insys.h"
#include "sched/rate.h"
#include "sched/rescue.h"
#include "sched/timers.h"

#include <linux/futex.h>

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

/*
 * Kinds of calls that were seen to return soon, by their numbers: most do, always. Others may wait for whatever they like, and
 * those who are queued for the worker are not to wait until the monitor finds that out. One byte each, written once.
 */
#define SOON_NS (100 * WF_US)

static bool returns_soon[LX_MAX_NR]; /* (a) */

static bool is_known(long nr)
{
	return nr < 0 || nr >= LX_MAX_NR || wf_load_relaxed(&returns_soon[nr]);
}

static void learn(long nr, uint64_t began)
{
	if (wf_cycles_ns(wf_cpu_cycles() - began) < SOON_NS)
		wf_store_relaxed(&returns_soon[nr], true);
}

/* Those futex waits that scopes end, and what signals end. */
static bool is_reached(const struct lx_thread *self, long nr)
{
	return lx_scope_reaches(nr) || lx_scope_in_futex(self);
}

static bool is_cut_off(struct lx_thread *self, long nr)
{
	if (lx_scope_reaches(nr))
		return lx_scope_is_over(self);
	return lx_scope_in_futex(self) && lx_scope_ends_futex(self);
}

static long call_once(struct lx_thread *self, long nr, const long args[6], enum how how)
{
	static const uint32_t nothing;
	struct wf_scopes *sc = how == CALL_REST || !is_reached(self, nr) ? NULL : self->base.scopes;
	/* The monitor interrupts a call that breaks only while the worker is there. */
	bool is_new = how == CALL_WATCHED && WF_UNLIKELY(!is_known(nr)) && !self->base.breaks_call;
	uint64_t began = is_new ? wf_cpu_cycles() : 0;
	long ret;

	if (WF_UNLIKELY(sc != NULL))
		wf_park_begin_call(sc);
	self->base.wait_what = (uint64_t)nr;
	self->base.wait_since = wf_load_relaxed(&wf_rt.coarse_now);
	if (how == CALL_HANDED_ON)
		wf_fetch_add(&lx.nr_held, 1u);
	if (how == CALL_LAZY)
		wf_call_enter_lazy();
	else if (is_new)
		wf_call_enter_unknown();
	else
		wf_call_enter(how == CALL_HANDED_ON);
	/* Not before the hand-off, in which the kernel thread may sleep, too: /proc would show that it waits. */
	wf_store_relaxed(&self->base.wait_kind, (uint8_t)WF_WAIT_CALL);
	ret = wf_arch_raw_call(nr, args, how == CALL_REST ? &nothing : &self->base.attention);
	if (WF_UNLIKELY(sc != NULL))
		wf_park_end_call(sc);
	if (is_new)
		learn(nr, began);
	if (how == CALL_HANDED_ON)
		wf_fetch_sub(&lx.nr_held, 1u);
	if (WF_UNLIKELY(ret < 0))
		lx_signal_take_raised(ret);
	wf_store_relaxed(&self->base.wait_kind, (uint8_t)WF_WAIT_NONE);
	wf_call_leave();
	return ret;
}

/* Clears the bits that would end the call at once; a thread that is to be bound is bound here. */
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

static long interrupted(enum lx_restart restart)
{
	switch (restart) {
	case LX_RESTART_SYS:
		return -ERESTARTSYS;
	case LX_RESTART_NOHAND:
		return -ERESTARTNOHAND;
	default:
		return -EINTR;
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
		if (lx_signal_is_waiting(self)) {
			if (ret == -ERESTARTNOINTR)
				return ret;
		} else if (ret != -EINTR || !is_cut_off(self, nr)) {
			wf_rescue_let_others_run();
			continue;
		}
		return interrupted(restart);
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
		return ret == -EINTR && lx_scope_is_over(self) ? -ERESTARTSYS : -EINTR;
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
	struct wf_scopes *sc = self->base.scopes;
	long args[6] = { set, (long)events, nr_events };
	struct __kernel_timespec left;

	forget_resched(self);
	if (WF_UNLIKELY(sc != NULL))
		wf_park_begin_call(sc);
	if (!wf_direct_begin(WF_WAIT_FD, (uint64_t)set, until)) {
		if (WF_UNLIKELY(sc != NULL))
			wf_park_end_call(sc);
		return false;
	}
	if (*until != WF_NEVER) {
		int64_t ns = WF_MAX(*until - wf_now(), 0);

		left = (struct __kernel_timespec){ ns / WF_SEC, ns % WF_SEC };
		args[3] = (long)&left;
	}
	*out = wf_arch_raw_call(__NR_epoll_pwait2, args, &self->base.attention);
	wf_direct_end();
	if (WF_UNLIKELY(sc != NULL))
		wf_park_end_call(sc);
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
	case __NR_msgrcv:
	case __NR_msgsnd:
		return LX_RESTART_NOHAND;
	case __NR_semop:
	case __NR_semtimedop:
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
