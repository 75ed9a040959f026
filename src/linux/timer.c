// SPDX-License-Identifier: Apache-2.0
/*
 * Timers are the kernel's; what becomes of their signals is ours.
 *
 * The kernel knows no weft thread: a timer for one thread (libc's SIGEV_THREAD helper is such a thread)
 * signals the door's kernel thread, and the door passes the signal on by the timer's number.
 *
 * Whoever stops a timer relies on it that no signal of it comes later, and natively one that was sent is
 * handled before the call returns. So the calls that stop or change a timer let the door finish with what
 * it may hold, while the timer stands still; a one-shot timer that was still running has sent nothing. What was not handled is dropped.
 *
 * The kernel keeps one signal of a timer at most, and counts overruns while it is pending. So do our queues
 * (sigqueue.c), where the kernel does not know of it: the count is ours then.
 */
#include "linux/abi.h"
#include "linux/calls.h"
#include "linux/cpuclock.h"
#include "linux/timers.h"

#include <signal.h>

#define MAX_TIMERS 1024
#define ITIMER_REAL 0

struct timerval_k {
	struct {
		int64_t sec, usec;
	} interval, value;
};

/* Numbers of the kernel grow with every timer that the process makes: a table by number would fill up. */
static struct {
	struct wf_spin lock;
	uint32_t nr;    /* (q) */
	uint32_t drain; /* (o) the door's: how many there were */
	struct timer {
		int id, signo;
		uint32_t tid;   /* of the thread that it is for, 0: the process */
		int overrun;    /* of the last signal that was taken */
		uint32_t drain; /* the last that took a signal of it */
	} timer[MAX_TIMERS];    /* (q) */
} timers;

/* Under the lock: the place of a timer, or nr. */
static uint32_t find(int id)
{
	uint32_t i = 0;

	while (i < timers.nr && timers.timer[i].id != id)
		i++;
	return i;
}

static bool remember(int id, int signo, uint32_t tid)
{
	bool has_room;

	wf_spin_lock(&timers.lock);
	has_room = timers.nr < MAX_TIMERS;
	if (has_room) {
		timers.timer[timers.nr++] = (struct timer){ .id = id, .signo = signo, .tid = tid };
	}
	wf_spin_unlock(&timers.lock);
	return has_room;
}

static long create_on_cpu(struct wf_frame *f, struct lx_thread *clock)
{
	struct lx_sigevent ev = { .notify = SIGEV_SIGNAL, .signo = SIGALRM };
	uint32_t tid = 0;
	int id = 0;
	long ret;

	if (WF_ARG1(f) && wf_arch_copy(&ev, (const void *)WF_ARG1(f), sizeof(ev)) < 0)
		return -EFAULT;
	if (ev.notify == SIGEV_NONE)
		ev.signo = SIGALRM; /* any: none is sent */
	if (ev.notify == SIGEV_THREAD_ID) {
		tid = (uint32_t)ev.tid;
		if (!tid || !lx_by_tid(tid))
			return -EINVAL;
	}
	ret = lx_timer_cpu_create(clock, &ev, !WF_ARG1(f), &id);
	if (ret < 0)
		return ret;
	if (ev.notify != SIGEV_NONE && !remember(id, ev.signo, tid)) {
		lx_timer_cpu_delete(id);
		(void)sys1(__NR_timer_delete, id);
		return -EAGAIN;
	}
	return wf_arch_copy((void *)WF_ARG2(f), &id, sizeof(id));
}

long sysc_timer_create(struct wf_frame *f)
{
	struct lx_sigevent ev;
	struct lx_thread *clock;
	uint32_t tid;
	int id = 0;
	long ret;

	switch (lx_cpuclock_thread((int)WF_ARG0(f), &clock)) {
	case LX_CLOCK_THREAD:
		return create_on_cpu(f, clock);
	case LX_CLOCK_DEAD:
		return -EINVAL;
	case LX_CLOCK_KERNEL:
		break;
	}
	if (!WF_ARG1(f)) {
		ret = lx_raw(f);
		if (ret == 0 && wf_arch_copy(&id, (const void *)WF_ARG2(f), sizeof(id)) == 0)
			(void)remember(id, SIGALRM, 0);
		return ret;
	}
	if (wf_arch_copy(&ev, (const void *)WF_ARG1(f), sizeof(ev)) < 0)
		return -EFAULT;
	if (ev.notify != SIGEV_THREAD_ID) {
		ret = lx_raw(f);
		if (ret == 0 && ev.notify == SIGEV_SIGNAL &&
		    wf_arch_copy(&id, (const void *)WF_ARG2(f), sizeof(id)) == 0)
			(void)remember(id, ev.signo, 0);
		return ret;
	}
	tid = (uint32_t)ev.tid;
	if (!tid || !lx_by_tid(tid))
		return -EINVAL;
	ev.tid = wf_rt.door->tid;
	ret = sys3(__NR_timer_create, WF_ARG0(f), &ev, &id);
	if (ret < 0)
		return ret;
	if (!remember(id, ev.signo, tid)) {
		(void)sys1(__NR_timer_delete, id);
		return -EAGAIN;
	}
	return wf_arch_copy((void *)WF_ARG2(f), &id, sizeof(id));
}

long sysc_timer_delete(struct wf_frame *f)
{
	int id = (int)WF_ARG0(f);
	long ret = lx_raw(f);
	uint32_t i;

	if (ret < 0)
		return ret;
	lx_timer_cpu_delete(id);
	lx_door_pass();
	wf_spin_lock(&timers.lock);
	i = find(id);
	if (i < timers.nr)
		timers.timer[i] = timers.timer[--timers.nr];
	wf_spin_unlock(&timers.lock);
	lx_signal_drop_timer(id);
	return 0;
}

/* Of the process, and blocked by all: the kernel shall keep it, with its overruns. */
static void expect(int id)
{
	int signo;
	uint32_t i;

	wf_spin_lock(&timers.lock);
	i = find(id);
	signo = i < timers.nr && !timers.timer[i].tid ? timers.timer[i].signo : 0;
	wf_spin_unlock(&timers.lock);
	if (signo)
		lx_signal_expect(signo);
}

static bool is_zero(const struct __kernel_timespec *ts)
{
	return !ts->tv_sec && !ts->tv_nsec;
}

static bool is_valid(const struct __kernel_timespec *ts)
{
	return ts->tv_sec >= 0 && ts->tv_nsec >= 0 && ts->tv_nsec < WF_SEC;
}

static long set(int id, int flags, const struct lx_timerspec *fresh, struct lx_timerspec *old)
{
	if (lx_timer_cpu_owns(id))
		return lx_timer_cpu_settime(id, flags, fresh, old);
	return sys4(__NR_timer_settime, id, flags, fresh, old);
}

/* Stopped first: what is dropped must all be from before, and the new time may be over at once. */
long sysc_timer_settime(struct wf_frame *f)
{
	const struct lx_timerspec stop = { 0 };
	struct lx_timerspec old, fresh, stopped;
	int id = (int)WF_ARG0(f);
	long ret;

	if (!WF_ARG2(f))
		return -EINVAL;
	if (wf_arch_copy(&fresh, (const void *)WF_ARG2(f), sizeof(fresh)) < 0)
		return -EFAULT;
	if (!is_valid(&fresh.value) || !is_valid(&fresh.interval))
		return -EINVAL;
	expect(id);
	ret = set(id, 0, &stop, &old);
	if (ret < 0)
		return ret;
	if (is_zero(&old.value) || !is_zero(&old.interval)) {
		lx_door_pass();
		lx_signal_drop_timer(id);
	}
	if (!is_zero(&fresh.value) || !is_zero(&fresh.interval))
		ret = set(id, (int)WF_ARG1(f), &fresh, &stopped);
	if (ret < 0)
		return ret;
	return WF_ARG3(f) ? wf_arch_copy((void *)WF_ARG3(f), &old, sizeof(old)) : 0;
}

long sysc_timer_gettime(struct wf_frame *f)
{
	struct lx_timerspec now;
	long ret;

	if (!lx_timer_cpu_owns((int)WF_ARG0(f)))
		return lx_raw(f);
	ret = lx_timer_cpu_gettime((int)WF_ARG0(f), &now);
	return ret < 0 ? ret : wf_arch_copy((void *)WF_ARG1(f), &now, sizeof(now));
}

long sysc_timer_getoverrun(struct wf_frame *f)
{
	long ret = lx_raw(f);
	uint32_t i;

	wf_spin_lock(&timers.lock);
	i = find((int)WF_ARG0(f));
	if (ret >= 0 && i < timers.nr)
		ret = timers.timer[i].overrun;
	wf_spin_unlock(&timers.lock);
	return ret;
}

void lx_timer_taken(const struct wf_siginfo *info)
{
	uint32_t i;

	wf_spin_lock(&timers.lock);
	i = find(info->timer.timer_id);
	if (i < timers.nr)
		timers.timer[i].overrun = info->timer.overrun;
	wf_spin_unlock(&timers.lock);
}

void lx_timer_drain_begin(void)
{
	timers.drain++;
}

bool lx_timer_is_back(int timer_id)
{
	bool is_back = false;
	uint32_t i;

	wf_spin_lock(&timers.lock);
	i = find(timer_id);
	if (i < timers.nr) {
		is_back = timers.timer[i].drain == timers.drain;
		timers.timer[i].drain = timers.drain;
	}
	wf_spin_unlock(&timers.lock);
	return is_back;
}

static bool may_have_expired(const struct timerval_k *old)
{
	return !(old->value.sec | old->value.usec) || old->interval.sec | old->interval.usec;
}

long sysc_setitimer(struct wf_frame *f)
{
	struct timerval_k old;
	long ret = sys3(__NR_setitimer, WF_ARG0(f), WF_ARG1(f), &old);

	if (ret < 0)
		return ret;
	if (may_have_expired(&old))
		lx_door_pass();
	return WF_ARG2(f) ? wf_arch_copy((void *)WF_ARG2(f), &old, sizeof(old)) : ret;
}

long sysc_alarm(struct wf_frame *f)
{
	struct timerval_k old;
	long ret;

	(void)sys2(__NR_getitimer, ITIMER_REAL, &old);
	ret = lx_raw(f);
	if (ret == 0 || may_have_expired(&old))
		lx_door_pass();
	return ret;
}

uint32_t lx_timer_target(int timer_id)
{
	uint32_t tid, i;

	wf_spin_lock(&timers.lock);
	i = find(timer_id);
	tid = i < timers.nr ? timers.timer[i].tid : 0;
	wf_spin_unlock(&timers.lock);
	return tid;
}

void lx_timer_forget(void)
{
	__builtin_memset(&timers, 0, sizeof(timers));
	lx_timer_cpu_forget();
}
