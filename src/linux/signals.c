// SPDX-License-Identifier: Apache-2.0
/*
 * Where signals are pending and whom they go to.
 *
 * Three places hold a pending signal:
 *   - the kernel, for the process, while no thread wants it ("parked", sigpark.c);
 *   - the process's queue, lx.shared, once some thread wanted it; every thread may take from it;
 *   - a thread's queue, once it was sent to that thread.
 * A signal that was taken by the door is at once put into one of them, ignored, or acted upon.
 *
 *   SENT    -> DROPPED  the poster         it is ignored, not blocked and not waited for
 *   SENT    -> THREAD   the poster         to one thread that has not ended: pending bit, attention word, then its state
 *   SENT    -> KERNEL   the kernel         from outside; or by us, behind those of its number that lie there
 *   KERNEL  -> SHARED   the door           rt_sigtimedwait(), of what is not parked
 *   SENT    -> SHARED   the poster         kill() to oneself
 *   SHARED  -> KERNEL   the door           nobody wants it: the bit of lx.parked first, then a look at all masks; a
 *                                          real-time one from outside stays, and the younger ones in the kernel
 *   SHARED, THREAD -> TAKEN  the thread    lx_pending_take(), under the queue's lock: a handler, or sigwait
 *   SHARED, THREAD -> DROPPED  the thread  it ends (its own queue), or the action became "ignore"
 *
 * A thread that is told of one looks at the gate's exit, before a handler's first instruction, when a handler returns,
 * when it goes on after a preemption, and before it parks; in the program's code the kick makes it look.
 * tests/model/signals.c and signals_process.c run all of it against all that can come in between.
 *
 * Every kernel thread blocks everything but the kick and synchronous faults, so the program's masks are plain
 * stores. The kernel's dispositions are kept equal to the program's, but for the kick and the faults: a fork
 * child is native with the right handlers, and ignored signals stay ignored over exec.
 *
 * Invariant (no lost signal):
 *   - A poster writes the pending bit and the attention word, then looks at the state and the kernel thread of
 *     the target; the target writes its state or kernel thread, then looks at the attention word.
 *     lx_signal_notify() covers every pair.
 *   - A poster to the process writes the pending bit, then reads masks to choose whom to notify. A thread that
 *     stops wanting a signal (mask, end of sigtimedwait, exit) writes that, then reads the pending bits, and
 *     has somebody else notified. One of the two sees the other.
 */
#include "linux/abi.h"
#include "linux/doorbell.h"
#include "linux/sigdefault.h"
#include "linux/sigfd.h"
#include "linux/signals.h"
#include "linux/sigpark.h"
#include "linux/sigqueue.h"
#include "linux/sigwant.h"
#include "linux/timertable.h"
#include "sched/kick.h"

#include <signal.h>

void lx_signal_stranded(void)
{
	uint32_t nr = wf_load_acquire(&wf_rt.nr_kthreads);

	/* Main may stand in its first pthread_create for as long as they are in calls. The kernel asks all others then. */
	if (wf_load_seq_cst(&lx.main->is_mask_unknown) &&
	    !wf_exchange_seq_cst(&lx.chooses_without_main, true))
		lx_signal_unpark(~0ull);
	for (uint32_t i = 0; i < nr; i++) {
		struct wf_thread *t = wf_load_relaxed(&wf_load_acquire(&wf_rt.kthreads[i])->cur);

		if (t && lx_signal_is_wanted(lx_of(t)))
			lx_signal_notify(lx_of(t));
	}
}

/* Linux looks at whom it is sent to; what is blocked or waited for is never ignored. */
static bool is_dropped(const struct lx_thread *t, int sig)
{
	return lx_signal_is_ignored(sig) && !(wf_load_relaxed(&t->sig_mask) & lx_bit(sig)) &&
	       !(wf_load_relaxed(&t->sig_awaited) & lx_bit(sig));
}

void lx_signal_flush(uint64_t set)
{
	const struct __kernel_timespec now = { 0, 0 };
	uint64_t parked = wf_load_seq_cst(&lx.parked) & set;
	uint32_t n = wf_thread_slots();

	while (parked && sys4(__NR_rt_sigtimedwait, &parked, 0, &now, sizeof(parked)) > 0)
		;
	lx_pending_drop(&lx.shared, set);
	for (uint32_t i = 0; i < n; i++) {
		struct lx_thread *t = lx_of(wf_thread_slot(i));

		if (t->pending.queue.next)
			lx_pending_drop(&t->pending, set);
	}
}

void lx_signal_drop_timer(int timer_id)
{
	uint32_t n = wf_thread_slots();

	lx_pending_drop_timer(&lx.shared, timer_id);
	for (uint32_t i = 0; i < n; i++)
		lx_pending_drop_timer(&lx_of(wf_thread_slot(i))->pending, timer_id);
}

void lx_signal_prepare(int sig)
{
	const uint64_t stops = lx_bit(SIGTSTP) | lx_bit(SIGTTIN) | lx_bit(SIGTTOU);

	if (sig == SIGCONT) {
		lx_signal_flush(stops);
		wf_store_seq_cst(&lx.is_to_stop, false);
	} else if (stops & lx_bit(sig)) {
		lx_signal_flush(lx_bit(SIGCONT));
		wf_store_seq_cst(&lx.is_to_stop, true);
	}
}

/* One more of a timer, for a thread that is between two of them. */
static bool can_wait(struct lx_thread *t, const struct wf_siginfo *info)
{
	return wf_load_seq_cst(&t->is_paced) && lx_signal_is_timers(info);
}

static bool is_door(void)
{
	return wf_own_kthread()->is_door;
}

long lx_signal_post(uint32_t tid, int sig, const struct wf_siginfo *info)
{
	const uint64_t bit = lx_bit(sig);
	struct lx_thread *t = lx_by_tid(tid);
	long ret;

	if (!t)
		return -ESRCH;
	lx_signal_prepare(sig);
	if (is_dropped(t, sig))
		return 0;
	WF_TRACE(wf_own_kthread(), WF_EV_SIGNAL, sig, lx_tid(t));
	if (wf_load_relaxed(&t->sig_mask) & bit && !(wf_load_relaxed(&t->sig_awaited) & bit) &&
	    lx_signalfd_shows(sig)) {
		ret = lx_pending_add(&lx.shared, 0, sig, info, !is_door());
		(void)wf_fetch_or(&lx.to_park, bit);
		if (!is_door())
			lx_door_pass();
		return ret;
	}
	ret = lx_pending_add(&t->pending, tid, sig, info, !is_door());
	if (ret == -ESRCH)
		return ret;
	if (wf_load_seq_cst(&t->sig_awaited) & bit ||
	    (!(wf_load_seq_cst(&t->sig_mask) & bit) && !can_wait(t, info)))
		lx_signal_notify(t);
	return ret;
}

int lx_signal_take(struct lx_thread *t, uint64_t set, struct wf_siginfo *out)
{
	int sig = lx_pending_take(&t->pending, set, out);

	if (!sig)
		sig = lx_pending_take(&lx.shared, set, out);
	if (sig && out->code == SI_TIMER)
		lx_timer_taken(out);
	return sig;
}

static bool is_dropped_by_process(int sig)
{
	return !wf_load_seq_cst(&lx.main->is_mask_unknown) && is_dropped(lx.main, sig);
}

/*
 * A signal that nobody wants goes (back) into the kernel. Not so if there are older ones of its number in our queue,
 * left by somebody who takes them one by one: then it waits behind them. Nor a timer's: put back it would be
 * nobody's, and the timer would send another one.
 */
static bool may_stay(int sig, bool had_some)
{
	return had_some && !lx_signalfd_shows(sig) && !wf_load_seq_cst(&lx.main->is_mask_unknown);
}

#define CORE_SIGNALS                                                                               \
	(lx_bit(SIGQUIT) | lx_bit(SIGILL) | lx_bit(SIGTRAP) | lx_bit(SIGABRT) | lx_bit(SIGBUS) |   \
	 lx_bit(SIGFPE) | lx_bit(SIGSEGV) | lx_bit(SIGXCPU) | lx_bit(SIGXFSZ) | lx_bit(SIGSYS))
#define STOP_SIGNALS (lx_bit(SIGTSTP) | lx_bit(SIGTTIN) | lx_bit(SIGTTOU))

/* t, or if it is in a critical section of libc's any other, could take the signal right now. */
static bool is_open_to_any(struct lx_thread *t, int sig)
{
	uint32_t n = wf_thread_slots();

	if (!(wf_load_seq_cst(&t->sig_mask) & lx_bit(sig)))
		return true;
	for (uint32_t i = 0; i < n; i++) {
		t = lx_of(wf_thread_slot(i));
		if (lx_signal_wants(t, sig) && !(wf_load_seq_cst(&t->sig_mask) & lx_bit(sig)))
			return true;
	}
	return false;
}

/*
 * A signal that is t's and ends the process does so at once, as on Linux, and not when t runs: there may be no kernel
 * thread for it any more. Not one with a core, which begins with the thread that took it, while t can run.
 */
static void end_if_fatal(struct lx_thread *t, int sig, const struct wf_siginfo *info)
{
	struct wf_siginfo copy = *info;

	if (wf_load_seq_cst(&lx.action[sig].handler) != SIG_DFL || lx_signal_default_ignores(sig) ||
	    STOP_SIGNALS & lx_bit(sig) || wf_load_seq_cst(&t->sig_awaited) & lx_bit(sig) ||
	    !is_open_to_any(t, sig) ||
	    (CORE_SIGNALS & lx_bit(sig) && wf_load_relaxed(&wf_rt.nr_kthreads) < WF_MAX_KTHREADS))
		return;
	copy.signo = sig;
	lx_signal_default_action(sig, &copy);
}

void lx_signal_process(int sig, const struct wf_siginfo *info, struct lx_thread *first)
{
	struct lx_thread *t;
	bool had_some;

	lx_signal_prepare(sig);
	if (is_dropped_by_process(sig))
		return;
	had_some = wf_load_seq_cst(&lx.shared.set) & lx_bit(sig);
	(void)lx_pending_add(&lx.shared, 0, sig, info, false);
	t = first && lx_signal_wants(first, sig) ? first : lx_signal_choose(sig, NULL);
	if (t)
		end_if_fatal(t, sig, info);
	if (t && (wf_load_seq_cst(&t->sig_awaited) & lx_bit(sig) || !can_wait(t, info)))
		lx_signal_notify(t);
	else if (!t && !may_stay(sig, had_some || info->code == SI_TIMER))
		lx_signal_park_taken(sig);
}

long lx_signal_send_self(int sig, const struct wf_siginfo *info)
{
	const uint64_t bit = lx_bit(sig);
	struct lx_thread *self = lx_self(), *t;
	struct wf_siginfo copy;
	long ret;

	lx_signal_prepare(sig);
	if (is_dropped_by_process(sig))
		return 0;
	if (!lx_signal_choose(sig, self) && wf_load_seq_cst(&lx.parked) & bit &&
	    (sig >= LX_FIRST_REALTIME || !(wf_load_seq_cst(&lx.shared.set) & bit))) {
		/* Behind those that the kernel has. A thread that wants it now and did not before rings the door. */
		copy = *info;
		copy.signo = sig;
		ret = sys3(__NR_rt_sigqueueinfo, wf_rt.pid, sig, &copy);
		if (ret == -EPERM) /* the kernel wants this info from the door only */
			ret = sys2(__NR_kill, wf_rt.pid, sig);
		if (lx_signal_choose(sig, self))
			lx_signal_unpark(bit);
		return ret;
	}
	/* Older ones may still be on their way out of the kernel. */
	if (wf_load_seq_cst(&lx.parked) & bit)
		lx_signal_unpark_and_wait(bit);
	else if (wf_load_seq_cst(&lx.nr_unparking))
		lx_door_pass();
	ret = lx_pending_add(&lx.shared, 0, sig, info, true);
	if (ret < 0)
		return ret;
	WF_TRACE(wf_self_kthread(), WF_EV_SIGNAL, sig, 0);
	t = lx_signal_choose(sig, self);
	if (t) {
		end_if_fatal(t, sig, info);
		lx_signal_notify(t);
	} else {
		(void)wf_fetch_or(&lx.to_park, bit);
		lx_door_pass();
	}
	return 0;
}

void lx_signal_retarget(uint64_t set)
{
	uint64_t left = wf_load_seq_cst(&lx.shared.set) & set, homeless = 0;

	for (; left; left &= left - 1) {
		int sig = __builtin_ctzll(left) + 1;
		struct lx_thread *t = lx_signal_choose(sig, NULL);

		if (t)
			lx_signal_notify(t);
		else if (lx_signalfd_shows(sig))
			homeless |= lx_bit(sig);
	}
	/* A thread that wants it later finds it where it is, but for readers of a signalfd. */
	if (homeless) {
		(void)wf_fetch_or(&lx.to_park, homeless);
		wf_kick(wf_rt.door);
	}
}

void lx_signal_set_mask(struct lx_thread *t, uint64_t mask)
{
	uint64_t opened = t->sig_mask & ~mask, closed = 0;

	/*
	 * libc blocks all 64, its own two included, only around short critical sections (a program cannot: it
	 * never gets at those two). A signal for the process that comes then waits for the section to end,
	 * instead of going to another thread.
	 */
	if ((mask | LX_UNBLOCKABLE) != ~0ull) {
		closed = mask & ~t->sig_shown_mask;
		wf_store_release(&t->sig_shown_mask, mask); /* the store of sig_mask orders it */
		if (t->is_mask_unknown) {
			wf_store_seq_cst(&t->is_mask_unknown, false);
			if (t == lx.main)
				opened =
					~0ull; /* every decision about a signal was put off until now */
		}
	}
	mask &= ~LX_UNBLOCKABLE;
	/* our masks before our look at what is pending; who sends adds first, then looks at masks */
	wf_store_seq_cst(&t->sig_mask, mask);
	if (opened && (wf_load_seq_cst(&lx.parked) & opened || wf_load_seq_cst(&lx.nr_unparking)))
		lx_signal_unpark_and_wait(opened);
	if (wf_load_seq_cst(&lx.shared.set) & closed)
		lx_signal_retarget(closed);
	if (lx_signal_is_wanted(t))
		(void)wf_fetch_or(&t->base.attention, WF_ATT_SIGNAL);
}

void lx_signal_thread_init(struct lx_thread *t, const struct lx_thread *parent)
{
	lx_pending_init(&t->pending, lx_tid(t));
	t->sig_mask = parent ? parent->sig_mask : 0;
	t->sig_shown_mask = parent ? parent->sig_shown_mask : 0;
	t->is_mask_unknown = parent && parent->is_mask_unknown;
	t->sig_awaited = 0;
	wf_store_relaxed(&t->is_paced, false);
	t->has_saved_mask = false;
	t->altstack = (struct wf_stack_t){ .flags = SS_DISABLE };
	t->fp_room = NULL;
}

void lx_signal_thread_exit(struct lx_thread *t)
{
	wf_store_release(&t->is_mask_unknown, false);
	wf_store_release(&t->sig_shown_mask, ~0ull);
	wf_store_seq_cst(&t->sig_mask, ~0ull); /* as in lx_signal_set_mask() */
	lx_pending_close(&t->pending);
	lx_signal_retarget(~0ull);
	if (t->fp_room)
		wf_slab_put(&wf_rt.save_areas, t->fp_room);
	t->fp_room = NULL;
}

void lx_signal_take_raised(long ret)
{
	struct __kernel_timespec zero = { 0, 0 };
	int sig = ret == -EPIPE ? SIGPIPE : ret == -EFBIG ? SIGXFSZ : 0;
	uint64_t set = sig ? lx_bit(sig) : 0;
	struct wf_siginfo info;

	if (sig && sys4(__NR_rt_sigtimedwait, &set, &info, &zero, sizeof(set)) == sig)
		(void)lx_signal_post(lx_tid(lx_self()), sig, &info);
}
