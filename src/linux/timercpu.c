// SPDX-License-Identifier: Apache-2.0
/*
 * Timers on the CPU clock of a thread.
 *
 * A timer of the kernel stands for each, on the wall clock: a thread uses no more than all of one processor, so the
 * timer cannot expire before the rest has passed there. It signals the door, which looks at the thread's clock and
 * sends the program's signal, or sets the kernel's timer to the new rest.
 */
#include "linux/cpuclock.h"
#include "linux/timers.h"

#define CLOCK_MONOTONIC 1
#define TIMER_ABSTIME 1
#define SIGEV_NONE 1
#define SIGEV_THREAD_ID 4
#define RECHECK_NS WF_MS
#define MAX_CPU_TIMERS 64

static struct {
	struct wf_spin lock;
	uint32_t nr; /* (a) written under the lock */
	struct cpu_timer {
		int id, signo; /* id 0 and signo 0: free */
		bool is_used, signals;
		uint64_t value;
		uint32_t clock_tid;     /* whose time */
		int64_t next, interval; /* on that clock; next 0: not armed */
	} timer[MAX_CPU_TIMERS];        /* (q) */
} cpu_timers;

/* Under the lock. */
static struct cpu_timer *find(int id)
{
	for (size_t i = 0; i < MAX_CPU_TIMERS; i++)
		if (cpu_timers.timer[i].is_used && cpu_timers.timer[i].id == id)
			return &cpu_timers.timer[i];
	return NULL;
}

static bool remember(const struct cpu_timer *fresh)
{
	bool found = false;

	wf_spin_lock(&cpu_timers.lock);
	for (size_t i = 0; i < MAX_CPU_TIMERS && !found; i++) {
		if (cpu_timers.timer[i].is_used)
			continue;
		cpu_timers.timer[i] = *fresh;
		wf_store_relaxed(&cpu_timers.nr, cpu_timers.nr + 1);
		found = true;
	}
	wf_spin_unlock(&cpu_timers.lock);
	return found;
}

void lx_timer_cpu_delete(int id)
{
	struct cpu_timer *c;

	if (!wf_load_relaxed(&cpu_timers.nr))
		return;
	wf_spin_lock(&cpu_timers.lock);
	c = find(id);
	if (c) {
		c->is_used = false;
		wf_store_relaxed(&cpu_timers.nr, cpu_timers.nr - 1);
	}
	wf_spin_unlock(&cpu_timers.lock);
}

bool lx_timer_cpu_owns(int id)
{
	bool is_ours = false;

	if (!wf_load_relaxed(&cpu_timers.nr))
		return false;
	wf_spin_lock(&cpu_timers.lock);
	is_ours = find(id) != NULL;
	wf_spin_unlock(&cpu_timers.lock);
	return is_ours;
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

long lx_timer_cpu_create(struct lx_thread *clock, const struct lx_sigevent *ev, bool value_is_id,
			 int *out_id)
{
	struct lx_sigevent own = { .notify = SIGEV_THREAD_ID,
				   .signo = WF_SIG_KICK,
				   .tid = wf_rt.door->tid };
	struct cpu_timer fresh = { .is_used = true,
				   .signals = ev->notify != SIGEV_NONE,
				   .signo = ev->signo,
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
	if (remember(&fresh))
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

static void show(const struct cpu_timer *c, int64_t now, struct lx_timerspec *out)
{
	int64_t rest = c->next && now >= 0 ? WF_MAX(c->next - now, 1) : 0;

	*out = (struct lx_timerspec){
		.interval = { c->interval / WF_SEC, c->interval % WF_SEC },
		.value = { rest / WF_SEC, rest % WF_SEC },
	};
}

/* The clock is read before the lock is taken: for another thread's it is a system call. */
static uint32_t clock_of(int id)
{
	struct cpu_timer *c;
	uint32_t tid;

	wf_spin_lock(&cpu_timers.lock);
	c = find(id);
	tid = c ? c->clock_tid : 0;
	wf_spin_unlock(&cpu_timers.lock);
	return tid;
}

long lx_timer_cpu_gettime(int id, struct lx_timerspec *out)
{
	int64_t now = now_of(clock_of(id));
	struct cpu_timer *c;

	wf_spin_lock(&cpu_timers.lock);
	c = find(id);
	if (c)
		show(c, now, out);
	wf_spin_unlock(&cpu_timers.lock);
	return c ? 0 : -EINVAL;
}

long lx_timer_cpu_settime(int id, int flags, const struct lx_timerspec *fresh,
			  struct lx_timerspec *old)
{
	int64_t now = now_of(clock_of(id)), next, rest = 0;
	struct cpu_timer *c;

	if (!is_valid(&fresh->value) || !is_valid(&fresh->interval))
		return -EINVAL;
	if (now < 0)
		return -ESRCH;
	next = ns_of(&fresh->value);
	if (next && !(flags & TIMER_ABSTIME))
		next += now;
	wf_spin_lock(&cpu_timers.lock);
	c = find(id);
	if (c) {
		show(c, now, old);
		c->next = next;
		c->interval = ns_of(&fresh->interval);
		rest = next ? WF_MAX(next - now, 1) : 0;
	}
	wf_spin_unlock(&cpu_timers.lock);
	if (!c)
		return -EINVAL;
	set_kernels(id, rest);
	return 0;
}

void lx_timer_cpu_expired(int id)
{
	int64_t now = now_of(clock_of(id)), rest = 0;
	struct wf_siginfo info = { 0 };
	bool signals = false;
	struct cpu_timer *c;
	uint32_t tid;

	wf_spin_lock(&cpu_timers.lock);
	c = find(id);
	if (c && c->next && now >= c->next) {
		int64_t n = c->interval ? 1 + (now - c->next) / c->interval : 1;

		c->next = c->interval ? c->next + n * c->interval : 0;
		signals = c->signals;
		info = (struct wf_siginfo){ .signo = c->signo, .code = LX_SI_TIMER };
		info.timer.timer_id = id;
		info.timer.overrun = (int)WF_MIN(n - 1, INT32_MAX);
		info.timer.value = c->value;
	}
	if (c && c->next && now >= 0)
		rest = c->next - now;
	wf_spin_unlock(&cpu_timers.lock);
	if (signals) {
		tid = lx_timer_target(id);
		if (tid)
			(void)lx_signal_post(tid, info.signo, &info);
		else
			lx_signal_process(info.signo, &info, NULL);
	}
	if (rest)
		set_kernels(id, rest);
}

void lx_timer_cpu_forget(void)
{
	__builtin_memset(&cpu_timers, 0, sizeof(cpu_timers));
}
