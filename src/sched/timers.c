// SPDX-License-Identifier: Apache-2.0
/* The sleeper that wakes up for the next timer; see timers.h. */
#include "sched/timers.h"
#include "sched/clock.h"
#include "sched/kick.h"
#include "sched/runtime.h"

/*
 * While every worker is busy a timer has to wait for a processor anyhow: worth a system call and the door's
 * time only if the door would be much later, and not more often than that.
 */
#define BUSY_LATENESS_NS WF_MS

static bool arm(int64_t deadline)
{
	return wf_rt.io->arm && wf_rt.io->arm(deadline);
}

/* Without a clock in the poller its sleepers have a timeout for the timer that was the first until now. */
static void wake_sleeper(void)
{
	uint32_t none = 0;

	/*
	 * One token for one wake(), as two wake() may end one poll() only. The holder of the token now reads the
	 * timers before it sleeps, or wakes somebody who does.
	 */
	if (wf_cas(&wf_rt.nr_searching, &none, 1u))
		wf_rt.io->wake();
}

/* Somebody sleeps, perhaps for ever because the clock was armed; should it have been lost, it needs a timeout. */
static void arm_for_sleepers(int64_t deadline)
{
	if (!arm(deadline) && !wf_load_relaxed(&wf_rt.is_clock_lost) &&
	    !wf_exchange(&wf_rt.is_clock_lost, 1u))
		wake_sleeper();
}

static bool has_queued_work(void)
{
	struct wf_worker *w = wf_own_kthread()->worker;

	return !w || wf_runq_nr(&w->rq) || wf_load_relaxed(&w->inbox);
}

void wf_timers_first(int64_t deadline)
{
	if (wf_load_seq_cst(&wf_rt.nr_idle)) {
		if (!arm(deadline))
			wake_sleeper();
		return;
	}
	/* Without other work the worker goes to sleep itself, or passes by wf_timers_awake(). */
	if (deadline < wf_load_seq_cst(&wf_rt.monitor_until) && has_queued_work())
		wf_kick(wf_rt.door);
}

void wf_timers_look(void)
{
	int64_t now;

	if (wf_load_relaxed(&wf_rt.wheel.next) != WF_NEVER) {
		now = wf_now();
		wf_store_relaxed(&wf_rt.coarse_now, now);
		(void)wf_wheel_expire(&wf_rt.wheel, now);
	}
}

void wf_timers_due(void)
{
	int64_t next;

	wf_timers_look();
	next = wf_load_seq_cst(&wf_rt.wheel.next);
	/* If nobody sleeps, whoever goes to sleep next arms it. */
	if (next != WF_NEVER && wf_load_seq_cst(&wf_rt.nr_idle))
		arm_for_sleepers(next);
}

int64_t wf_timers_sleep(void)
{
	int64_t next = wf_load_seq_cst(&wf_rt.wheel.next);

	if (next == WF_NEVER || arm(next))
		return -1;
	return WF_MAX(next - wf_now(), 0);
}

void wf_timers_awake(void)
{
	int64_t next = wf_load_seq_cst(&wf_rt.wheel.next), now, last;

	if (next == WF_NEVER)
		return;
	if (wf_load_seq_cst(&wf_rt.nr_idle)) {
		arm_for_sleepers(next); /* what it was armed for may have come to us */
		return;
	}
	if (wf_load_seq_cst(&wf_rt.monitor_until) - BUSY_LATENESS_NS <= next)
		return;
	now = wf_now();
	last = wf_load_relaxed(&wf_rt.door_told_at);
	if (now - last >= BUSY_LATENESS_NS && wf_cas(&wf_rt.door_told_at, &last, now))
		wf_kick(wf_rt.door);
}

/*
 * One that leaves the poller as the last within a millisecond after the door was told does not tell it: the door looks again
 * when that is over. It has been told, so it reads the time, or is about to.
 */
int64_t wf_timers_look_again(int64_t now)
{
	int64_t at = wf_load_relaxed(&wf_rt.door_told_at) + BUSY_LATENESS_NS;

	return at > now && wf_load_seq_cst(&wf_rt.wheel.next) != WF_NEVER ? at : WF_NEVER;
}

bool wf_timers_door_is_late(int64_t now, int64_t until)
{
	if (wf_load_seq_cst(&wf_rt.nr_idle))
		return false;
	if (wf_load_seq_cst(&wf_rt.nr_lazy) && until - now > WF_MS)
		return true;
	return wf_load_seq_cst(&wf_rt.wheel.next) < until && until - now > WF_MONITOR_MIN_NS;
}
