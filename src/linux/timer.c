// SPDX-License-Identifier: Apache-2.0
/*
 * Timers are the kernel's; what becomes of their signals is ours.
 *
 * The kernel knows no weft thread: a timer for one thread (libc's SIGEV_THREAD helper is such a thread)
 * signals the door's kernel thread, and the door passes the signal on by the timer's number.
 *
 * A thread that stops a timer relies on it that no signal of it comes later, and natively one that was sent is
 * handled before the call returns. So the calls that stop or change a timer let the door finish with what
 * it may hold, while the timer stands still; a one-shot timer that was still running has sent nothing. A signal that was
 * not handled is dropped.
 *
 * The kernel keeps one signal of a timer at most, and counts overruns while it is pending. So do our queues
 * (sigqueue.c), where the kernel does not know of it: the count is ours then.
 */
#include "linux/abi.h"
#include "linux/calls.h"
#include "linux/cpuclock.h"
#include "linux/doorbell.h"
#include "linux/signals.h"
#include "linux/sigpark.h"
#include "linux/timercpu.h"
#include "linux/timertable.h"
#include "sched/clock.h"

#include <signal.h>

#define ITIMER_REAL 0
/* As many times as fast as the wall clock may a clock of the process run: it has no more processors. */
#define MAX_CLOCK_RATE 1024

struct timerval_k {
	struct {
		int64_t sec, usec;
	} interval, value;
};

/* Known of a timer before it is stopped; see struct lx_timer. */
struct past {
	uint32_t begun, ended, clean;
};

/* A timer of the kernel's that we could not write down is none. */
static long remember(int id, int signo, uint32_t tid)
{
	const struct lx_timer fresh = { .id = id, .signo = signo, .tid = tid };

	if (lx_timer_add(&fresh))
		return 0;
	(void)sys1(__NR_timer_delete, id);
	return -EAGAIN;
}

static long hand_out(struct wf_frame *f, int id)
{
	if (wf_arch_copy((void *)WF_ARG2(f), &id, sizeof(id)) == 0)
		return 0;
	(void)sys1(__NR_timer_delete, id);
	lx_timer_remove(id);
	return -EFAULT;
}

static long create_on_cpu(struct wf_frame *f, struct lx_thread *clock)
{
	struct lx_sigevent ev = { .notify = SIGEV_SIGNAL, .signo = SIGALRM };
	uint32_t tid = 0;
	int id = 0;
	long ret;

	if (WF_ARG1(f) && wf_arch_copy(&ev, (const void *)WF_ARG1(f), sizeof(ev)) < 0)
		return -EFAULT;
	if (ev.notify != SIGEV_THREAD_ID && (ev.notify < SIGEV_SIGNAL || ev.notify > SIGEV_THREAD))
		return -EINVAL;
	if (ev.notify == SIGEV_NONE)
		ev.signo = SIGALRM; /* any: none is sent */
	if (ev.notify == SIGEV_THREAD_ID) {
		tid = (uint32_t)ev.tid;
		if (!tid || !lx_by_tid(tid))
			return -EINVAL;
	}
	ret = lx_timer_cpu_create(clock, &ev, !WF_ARG1(f), tid, &id);
	return ret < 0 ? ret : hand_out(f, id);
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
			ret = remember(id, SIGALRM, 0);
		return ret;
	}
	if (wf_arch_copy(&ev, (const void *)WF_ARG1(f), sizeof(ev)) < 0)
		return -EFAULT;
	if (ev.notify != SIGEV_THREAD_ID) {
		ret = lx_raw(f);
		if (ret == 0 && ev.notify != SIGEV_NONE &&
		    wf_arch_copy(&id, (const void *)WF_ARG2(f), sizeof(id)) == 0)
			ret = remember(id, ev.signo, 0);
		return ret;
	}
	tid = (uint32_t)ev.tid;
	if (!tid || !lx_by_tid(tid))
		return -EINVAL;
	ev.tid = wf_rt.door->tid;
	ret = sys3(__NR_timer_create, WF_ARG0(f), &ev, &id);
	if (ret == 0)
		ret = remember(id, ev.signo, tid);
	return ret < 0 ? ret : hand_out(f, id);
}

/* Of the process, and blocked by all: the kernel shall keep it, with its overruns. */
static void expect(int id)
{
	const struct lx_timer *t;
	int signo;

	lx_timer_lock();
	t = lx_timer_find(id);
	signo = t && !t->tid && !t->clock_tid ? t->signo : 0;
	lx_timer_unlock();
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

static void count_begun(int id)
{
	struct lx_timer *t;

	lx_timer_lock();
	t = lx_timer_find(id);
	if (t)
		t->begun++;
	lx_timer_unlock();
}

static void count_ended(int id)
{
	struct lx_timer *t;

	lx_timer_lock();
	t = lx_timer_find(id);
	if (t)
		t->ended++;
	lx_timer_unlock();
}

/* A timer that never sent a signal may be unknown: it is taken for one that was set once. */
static struct past look_at(int id)
{
	struct past past = { .begun = 1, .ended = 1 };
	const struct lx_timer *t;

	lx_timer_lock();
	t = lx_timer_find(id);
	if (t)
		past = (struct past){ t->begun, t->ended, t->clean };
	lx_timer_unlock();
	return past;
}

/* Others that are setting it to run may be on either side of us: theirs are not counted. */
static void set_clean(int id, const struct past *past)
{
	struct lx_timer *t;

	lx_timer_lock();
	t = lx_timer_find(id);
	if (t) {
		t->clean = past->ended;
		t->overrun = 0;
	}
	lx_timer_unlock();
}

static void drop_sent(int id)
{
	lx_door_pass();
	lx_signal_drop_timer(id);
}

/*
 * The timer stands still, and nothing of it comes any more. The pass of the door is what takes time, so it is only
 * made if a signal may have been sent: the kernel reads what is left before it stops the timer, which may
 * end in between. Set to run more than once, it may have sent one before the last time.
 */
static long stop(int id, struct lx_timerspec *old, struct past *out_past)
{
	const struct lx_timerspec zero = { 0 };
	struct past past = look_at(id);
	uint32_t nr_set = past.begun - past.clean;
	int64_t begin = nr_set ? wf_now() : 0, took;
	long ret = set(id, 0, &zero, old);

	*out_past = past;
	if (ret < 0)
		return ret;
	if (look_at(id).begun != past.begun)
		nr_set = 2;
	if (nr_set == 1 && is_zero(&old->interval)) {
		took = (wf_now() - begin) * MAX_CLOCK_RATE;
		if (old->value.tv_sec > took / WF_SEC ||
		    old->value.tv_sec * WF_SEC + old->value.tv_nsec > took)
			nr_set = 0;
	}
	if (nr_set)
		drop_sent(id);
	set_clean(id, &past);
	return 0;
}

long sysc_timer_delete(struct wf_frame *f)
{
	int id = (int)WF_ARG0(f);
	struct lx_timerspec old;
	struct past past;
	long stopped = stop(id, &old, &past), ret = lx_raw(f);

	if (ret < 0)
		return ret;
	/* The clock is that of a thread that has ended; or somebody set it again meanwhile. */
	if (stopped < 0 || look_at(id).begun != past.ended)
		drop_sent(id);
	lx_timer_remove(id);
	return 0;
}

/* Stopped first: what is dropped must all be from before, and the new time may be over at once. */
long sysc_timer_settime(struct wf_frame *f)
{
	struct lx_timerspec old, fresh, stopped;
	int id = (int)WF_ARG0(f);
	struct past past;
	long ret;

	if (!WF_ARG2(f))
		return -EINVAL;
	if (wf_arch_copy(&fresh, (const void *)WF_ARG2(f), sizeof(fresh)) < 0)
		return -EFAULT;
	if (!is_valid(&fresh.value) || !is_valid(&fresh.interval))
		return -EINVAL;
	expect(id);
	ret = stop(id, &old, &past);
	if (ret < 0)
		return ret;
	if (!is_zero(&fresh.value) || !is_zero(&fresh.interval)) {
		count_begun(id);
		ret = set(id, (int)WF_ARG1(f), &fresh, &stopped);
		count_ended(id);
	}
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
	const struct lx_timer *t;

	lx_timer_lock();
	t = lx_timer_find((int)WF_ARG0(f));
	if (ret >= 0 && t)
		ret = t->overrun;
	lx_timer_unlock();
	return ret;
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
