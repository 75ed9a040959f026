// SPDX-License-Identifier: Apache-2.0
/*
 * Timers on the CPU clock of a thread.
 *
 * A timer of the kernel stands for each, on the wall clock: a thread uses no more than all of one processor, so the
 * timer cannot expire before the rest has passed there. It signals the door, which looks at the thread's clock and
 * sends the program's signal, or sets the kernel's timer to the new rest.
 */
#include "linux/signals.h"
#include "linux/timercpu.h"
#include "linux/timertable.h"
#include "sched/account.h"
#include "sched/preempt.h"

#define CLOCK_MONOTONIC 1
#define TIMER_ABSTIME 1
#define SIGEV_NONE 1
#define SIGEV_THREAD_ID 4
#define RECHECK_NS WF_MS

/* Under the lock. */
static struct lx_timer *find(int id)
{
	struct lx_timer *c = lx_timer_find(id);

	return c && c->clock_tid ? c : NULL;
}

bool lx_timer_cpu_owns(int id)
{
	bool is_ours;

	lx_timer_lock();
	is_ours = find(id) != NULL;
	lx_timer_unlock();
	return is_ours;
}

long lx_timer_cpu_create(struct lx_thread *clock, const struct lx_sigevent *ev, bool value_is_id,
			 uint32_t tid, int *out_id)
{
	struct lx_sigevent own = { .notify = SIGEV_THREAD_ID,
				   .signo = WF_SIG_KICK,
				   .tid = wf_rt.door->tid };
	struct lx_timer fresh = { .signals = ev->notify != SIGEV_NONE,
				  .signo = ev->signo,
				  .tid = tid,
				  .value = ev->value,
				  .clock_tid = lx_tid(clock) };
	long ret;

	if (ev->signo < 1 || ev->signo > WF_NR_SIGNALS)
		return -EINVAL;
	ret = sys3(__NR_timer_create, CLOCK_MONOTONIC, &own, out_id);
	if (ret < 0)
		return ret;
	fresh.id = *out_id;
	if (value_is_id)
		fresh.value = (uint64_t)fresh.id;
	if (lx_timer_add(&fresh))
		return 0;
	(void)sys1(__NR_timer_delete, *out_id);
	return -EAGAIN;
}

static int64_t ns_of(const struct __kernel_timespec *ts)
{
	return WF_MIN(ts->tv_sec, WF_NEVER / WF_SEC / 4) * WF_SEC + ts->tv_nsec;
}

static bool is_valid(const struct __kernel_timespec *ts)
{
	return ts->tv_sec >= 0 && ts->tv_nsec >= 0 && ts->tv_nsec < WF_SEC;
}

/* Now on the clock of the thread, or -1 when it has ended: its timers never expire. */
static int64_t now_of(uint32_t clock_tid)
{
	struct lx_thread *t = lx_by_tid(clock_tid);

	return t ? wf_account_cpu_ns(&t->base) : -1;
}

/* now < 0: it never expires. */
static int64_t rest_of(int64_t next, int64_t now)
{
	return next && now >= 0 ? WF_MAX(next - now, 1) : 0;
}

static void show(const struct lx_timer *c, int64_t now, struct lx_timerspec *out)
{
	int64_t rest = rest_of(c->next, now);

	*out = (struct lx_timerspec){
		.interval = { c->interval / WF_SEC, c->interval % WF_SEC },
		.value = { rest / WF_SEC, rest % WF_SEC },
	};
}

/* The clock is read before the lock is taken: for another thread's it is a system call. */
static uint32_t clock_of(int id)
{
	struct lx_timer *c;
	uint32_t tid;

	lx_timer_lock();
	c = find(id);
	tid = c ? c->clock_tid : 0;
	lx_timer_unlock();
	return tid;
}

/* rest 0: stop it. */
static void set_kernels(int id, int64_t rest)
{
	struct lx_timerspec spec = { 0 };

	if (rest) {
		rest = WF_MAX(rest, RECHECK_NS);
		spec.value = (struct __kernel_timespec){ rest / WF_SEC, rest % WF_SEC };
	}
	(void)sys4(__NR_timer_settime, id, 0, &spec, NULL);
}

/* 0: it does not run. */
static int64_t next_of(int id)
{
	struct lx_timer *c;
	int64_t next;

	lx_timer_lock();
	c = find(id);
	next = c ? c->next : 0;
	lx_timer_unlock();
	return next;
}

/* To what was decided under the lock. A later decision of another one may be overwritten now: then it is set again. */
static void follow(int id, int64_t next, int64_t now)
{
	int64_t fresh;

	set_kernels(id, rest_of(next, now));
	while ((fresh = next_of(id)) != next) {
		next = fresh;
		set_kernels(id, rest_of(next, now_of(clock_of(id))));
	}
}

long lx_timer_cpu_gettime(int id, struct lx_timerspec *out)
{
	int64_t now = now_of(clock_of(id));
	struct lx_timer *c;

	lx_timer_lock();
	c = find(id);
	if (c)
		show(c, now, out);
	lx_timer_unlock();
	return c ? 0 : -EINVAL;
}

long lx_timer_cpu_settime(int id, int flags, const struct lx_timerspec *fresh,
			  struct lx_timerspec *old)
{
	int64_t now = now_of(clock_of(id)), next;
	struct lx_timer *c;

	if (!is_valid(&fresh->value) || !is_valid(&fresh->interval))
		return -EINVAL;
	if (now < 0)
		return -ESRCH;
	next = ns_of(&fresh->value);
	if (next && !(flags & TIMER_ABSTIME))
		next += now;
	lx_timer_lock();
	c = find(id);
	if (c) {
		show(c, now, old);
		c->next = next;
		c->interval = ns_of(&fresh->interval);
	}
	lx_timer_unlock();
	if (!c)
		return -EINVAL;
	follow(id, next, now);
	return 0;
}

void lx_timer_cpu_expired(int id)
{
	int64_t now = now_of(clock_of(id)), next = 0;
	struct wf_siginfo info = { 0 };
	bool signals = false;
	struct lx_timer *c;
	uint32_t tid = 0;

	lx_timer_lock();
	c = find(id);
	if (c && c->next && now >= c->next) {
		int64_t n = c->interval ? 1 + (now - c->next) / c->interval : 1;

		c->next = c->interval ? c->next + n * c->interval : 0;
		signals = c->signals;
		tid = c->tid;
		info = (struct wf_siginfo){ .signo = c->signo, .code = LX_SI_TIMER };
		info.timer.timer_id = id;
		info.timer.overrun = (int)WF_MIN(n - 1, INT32_MAX);
		info.timer.value = c->value;
	}
	if (c)
		next = c->next;
	lx_timer_unlock();
	if (signals) {
		if (tid)
			(void)lx_signal_post(tid, info.signo, &info);
		else
			lx_signal_process(info.signo, &info, NULL);
	}
	if (next && now >= 0)
		follow(id, next, now);
}
