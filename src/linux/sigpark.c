// SPDX-License-Identifier: Apache-2.0
/*
 * Signals that lie in the kernel because no thread wants them ("parked").
 *
 * execve, signalfd, timers and queue limits see them there. The door leaves parked signals alone; only the
 * door puts one there with its siginfo, which the kernel allows to nobody else.
 *
 * Invariant (no signal lies there that somebody wants): who parks sets the bit of lx.parked, then asks
 * whether anybody wants the signal; who starts wanting one stores that, then looks at the bit. Either of the
 * two unparks it. From before the bit is taken back until the door has fetched all of it nr_unparking is up: who wants
 * one then, or sends another, waits for the door, so that nothing is overtaken.
 */
#include "linux/abi.h"
#include "linux/doorbell.h"
#include "linux/sigfd.h"
#include "linux/sigpark.h"
#include "linux/sigqueue.h"
#include "linux/sigwant.h"
#include "linux/timertable.h"
#include "sched/kick.h"
#include "sched/preempt.h"

#include <signal.h>

static bool is_parkable(int sig)
{
	return wf_load_relaxed(&lx.is_execing) || !lx_signal_choose(sig, NULL);
}

void lx_signal_park(int sig)
{
	const struct __kernel_timespec now = { 0, 0 };
	const uint64_t bit = lx_bit(sig);
	struct wf_siginfo info;

	if (sig == WF_SIG_KICK_SPARE)
		return; /* the door always takes that one: it stays in our queue */
	(void)wf_fetch_or(&lx.parked, bit);
	/* Those there are younger than what we have: all of it goes back in order. */
	lx_timer_drain_begin();
	while (sys4(__NR_rt_sigtimedwait, &bit, &info, &now, sizeof(bit)) == sig) {
		(void)lx_pending_add(&lx.shared, 0, sig, &info, false);
		if (info.code == SI_TIMER && lx_timer_is_back(&info))
			break;
	}
	while (lx_pending_take(&lx.shared, bit, &info)) {
		if (sys3(__NR_rt_sigqueueinfo, wf_rt.pid, sig, &info) < 0) {
			/* the limit: better out of order than lost */
			lx_pending_push_front(&lx.shared, sig, &info);
			break;
		}
	}
	if (!is_parkable(sig))
		lx_signal_unpark(bit);
}

static bool must_lie_there(int sig)
{
	return wf_load_relaxed(&lx.is_execing) || lx_signalfd_shows(sig);
}

/*
 * Real-time signals come in order, and their sender may send the next one between our last look and the put-back of
 * this one. So those that we have stay with us, and only the younger ones in the kernel.
 */
void lx_signal_park_taken(int sig)
{
	if (sig < LX_FIRST_REALTIME || must_lie_there(sig)) {
		lx_signal_park(sig);
		return;
	}
	(void)wf_fetch_or(&lx.parked, lx_bit(sig));
	if (!is_parkable(sig))
		lx_signal_unpark(lx_bit(sig));
}

void lx_signal_park_asked(void)
{
	uint64_t set = wf_load_relaxed(&lx.to_park) ? wf_exchange(&lx.to_park, 0ull) : 0;

	for (set &= wf_load_seq_cst(&lx.shared.set); set; set &= set - 1) {
		int sig = __builtin_ctzll(set) + 1;

		if (is_parkable(sig))
			lx_signal_park(sig);
	}
}

void lx_signal_unpark(uint64_t set)
{
	if (!(wf_load_seq_cst(&lx.parked) & set))
		return;
	wf_fetch_add(&lx.nr_unparking, 1u);
	(void)wf_fetch_and(&lx.parked, ~set);
	wf_fetch_add(&lx.nr_unpark_asked, 1u);
	wf_kick(wf_rt.door);
}

void lx_signal_unpark_and_wait(uint64_t set)
{
	if (!(wf_load_seq_cst(&lx.parked) & set)) {
		/* Somebody else did it an instant ago: they are on their way. */
		if (wf_load_seq_cst(&lx.nr_unparking))
			lx_door_pass();
		return;
	}
	/* Another one that is sent meanwhile must not overtake those that were parked. */
	wf_fetch_add(&lx.nr_unparking, 1u);
	(void)wf_fetch_and(&lx.parked, ~set);
	lx_door_pass();
	wf_fetch_sub(&lx.nr_unparking, 1u);
}

void lx_signal_expect(int sig)
{
	const uint64_t bit = lx_bit(sig);

	if (sig < 1 || sig > WF_NR_SIGNALS || wf_load_seq_cst(&lx.parked) & bit ||
	    lx_signal_choose(sig, NULL))
		return;
	(void)wf_fetch_or(&lx.parked, bit);
	/* The door may be waiting with the set of before. */
	lx_door_pass();
	if (lx_signal_choose(sig, NULL))
		lx_signal_unpark(bit);
}

void lx_signal_leave(void)
{
	wf_store_seq_cst(&lx.is_execing, true);
	wf_store_seq_cst(&lx.parked, ~0ull);
	(void)wf_fetch_or(&lx.to_park, ~0ull);
	lx_door_pass();
}

void lx_signal_stay(void)
{
	wf_store_seq_cst(&lx.is_execing, false);
	lx_signal_unpark(~0ull);
}
