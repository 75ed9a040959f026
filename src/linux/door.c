// SPDX-License-Identifier: Apache-2.0
/*
 * The door: the main kernel thread (tid = pid) takes the process's signals, and is the monitor in one.
 *
 * It takes everything that is not parked and passes it to a thread at once. A thread that unblocks a parked signal
 * clears its bit, rings (the kick signal), and waits for its request to be answered (doorbell.c): then what was pending
 * has been posted. The kernel lets only this thread put a signal back with its siginfo: one more reason for
 * the door being tid = pid.
 */
#include "linux/abi.h"
#include "linux/door.h"
#include "linux/doorbell.h"
#include "linux/everybody.h"
#include "linux/heir.h"
#include "linux/remote.h"
#include "linux/sigfault.h"
#include "linux/signals.h"
#include "linux/sigpace.h"
#include "linux/sigpark.h"
#include "linux/timercpu.h"
#include "linux/timertable.h"
#include "linux/watchdog.h"
#include "sched/clock.h"
#include "sched/monitor.h"
#include "sched/preempt.h"
#include "sched/timers.h"

#include <signal.h>

static long take(uint64_t later, const struct __kernel_timespec *timeout, struct wf_siginfo *info)
{
	uint64_t set = (~wf_load_seq_cst(&lx.parked) | lx_bit(WF_SIG_KICK) |
			lx_bit(WF_SIG_KICK_SPARE)) &
		       ~later;

	return sys4(__NR_rt_sigtimedwait, &set, info, timeout, sizeof(set));
}

/* ITIMER_PROF and ITIMER_VIRTUAL ran out: Linux prefers the thread that used the time. */
static bool is_cpu_timer(int sig, const struct wf_siginfo *info)
{
	return (sig == SIGPROF || sig == SIGVTALRM) && info->code == SI_KERNEL;
}

/* A thread that runs, each time another: a profiler's samples are spread as the processors are. */
static struct lx_thread *next_running(void)
{
	static uint32_t turn;

	for (uint32_t i = 0; i < wf_rt.nr_workers; i++) {
		struct wf_worker *w = &wf_rt.workers[++turn % wf_rt.nr_workers];
		struct wf_kthread *k = wf_load_acquire(&w->kthread);
		struct wf_thread *t = k ? wf_load_relaxed(&k->cur) : NULL;

		if (t)
			return lx_of(t);
	}
	return NULL;
}

static void dispatch(int sig, struct wf_siginfo *info)
{
	uint32_t tid = 0;

	if (sig == WF_SIG_KICK && info->code == SI_TIMER) {
		lx_timer_cpu_expired(info->timer.timer_id);
		return;
	}
	if (wf_is_kick(sig, info)) {
		wf_store_seq_cst(&wf_rt.door->kick_sent, 0u);
		lx_everybody_answer(wf_rt.door);
		lx_remote_answer(wf_rt.door);
		wf_rt_door_kicked();
		return;
	}
	lx_signal_unforward(info);
	if (info->code == SI_TIMER)
		tid = lx_timer_target(info->timer.timer_id);
	else if (info->code == SI_TKILL &&
		 wf_state_of(wf_load_acquire(&lx.main->base.state)) != WF_DEAD)
		tid = lx_tid(lx.main); /* sent to the tid that is the pid */
	if (tid)
		(void)lx_signal_post(tid, sig, info);
	else
		lx_signal_process(sig, info, is_cpu_timer(sig, info) ? next_running() : NULL);
}

/*
 * All that was pending when it is called, and not all that comes meanwhile: a timer may be faster than we are.
 * A signal that is back tells that the rest of its number came later: a timer's one signal, or the third of a standard
 * one, of which the thread and the process have one each.
 */
void lx_door_drain(void)
{
	const struct __kernel_timespec now = { 0, 0 };
	uint32_t nr_asked = wf_load_seq_cst(&lx.nr_unpark_asked)
				    ? wf_exchange_seq_cst(&lx.nr_unpark_asked, 0u)
				    : 0;
	uint64_t once = 0, twice = 0, later = 0;
	struct wf_siginfo info;
	long sig;

	lx_timer_drain_begin();
	while ((sig = take(later, &now, &info)) > 0) {
		const uint64_t bit = lx_bit((int)sig);

		if (info.code == SI_TIMER) {
			if (lx_timer_is_back(&info))
				later |= bit;
		} else if (sig < LX_FIRST_REALTIME) {
			later |= twice & bit;
			twice |= once & bit;
			once |= bit;
		}
		dispatch((int)sig, &info);
	}
	if (nr_asked)
		wf_fetch_sub(&lx.nr_unparking, nr_asked);
	lx_signal_park_asked();
}

void lx_door_loop(void *kthread)
{
	int64_t next = WF_NEVER, until;

	(void)kthread;
	for (;;) {
		uint32_t request = lx_doorbell_asked();
		struct __kernel_timespec ts;
		struct wf_siginfo info;
		int64_t now, wait;
		long sig;

		lx_door_drain();
		lx_heir_answer();
		lx_doorbell_answer(request);
		now = sys_now();
		next = wf_load_relaxed(&wf_rt.monitor_armed) || next <= now ? wf_monitor_tick(now)
									    : next;
		wf_store_seq_cst(&wf_rt.monitor_until, next);
		until = WF_MIN(next, lx_signal_paced_until(now));
		until = WF_MIN(until, wf_timers_look_again(now));
		until = WF_MIN(until, lx_watchdog_look(now));
		if (wf_timers_door_is_late(now, next)) {
			next = now;
			continue;
		}
		/* One that came after our look sent no kick if it found another's still on its way. */
		if (lx_doorbell_asked() != request)
			continue;
		if (until != WF_NEVER || !wf_load_seq_cst(&wf_rt.monitor_armed)) {
			wait = until == WF_NEVER ? WF_NEVER : WF_MAX(until - wf_now(), 0);
			ts = (struct __kernel_timespec){ wait / WF_SEC, wait % WF_SEC };
			sig = take(0, until == WF_NEVER ? NULL : &ts, &info);
			if (sig > 0)
				dispatch((int)sig, &info);
		}
	}
}
