// SPDX-License-Identifier: Apache-2.0
/*
 * Clocks of threads. The kernel's belong to kernel threads, which a thread of ours changes all the time.
 *
 * A clock's number tells whose it is: 3 is the caller's, and a negative one with the bits 110 at its end
 * belongs to the thread whose tid's complement stands above them. libc reads clocks through the vDSO, whose
 * own system call is patched like libc's.
 */
#include "linux/calls.h"
#include "linux/cpuclock.h"
#include "linux/scope.h"
#include "linux/sigwant.h"
#include "sched/account.h"
#include "sched/clock.h"

#include <linux/resource.h>

#define CLOCK_THREAD_CPUTIME_ID 3
#define CPUCLOCK_PERTHREAD 4
#define CPUCLOCK_KIND 3
#define CPUCLOCK_FD 3
#define RECHECK_NS (2 * WF_MS) /* the kernel's own CPU timers are no finer than its tick */

enum lx_clock_kind lx_cpuclock_thread(int clock, struct lx_thread **out_thread)
{
	uint32_t tid = ~(uint32_t)(clock >> 3);
	struct lx_thread *t;

	if (clock == CLOCK_THREAD_CPUTIME_ID) {
		*out_thread = lx_self();
		return LX_CLOCK_THREAD;
	}
	if (clock >= 0 || !(clock & CPUCLOCK_PERTHREAD) || (clock & CPUCLOCK_KIND) == CPUCLOCK_FD)
		return LX_CLOCK_KERNEL;
	if (tid && tid != (uint32_t)wf_rt.pid && tid < WF_TID_BASE)
		return LX_CLOCK_KERNEL;
	t = lx_by_tid(tid);
	if (!t)
		return LX_CLOCK_DEAD;
	*out_thread = t;
	return LX_CLOCK_THREAD;
}

static long put_time(uint64_t user, int64_t ns)
{
	struct __kernel_timespec ts = { ns / WF_SEC, ns % WF_SEC };

	return wf_arch_copy((void *)user, &ts, sizeof(ts));
}

long sysc_clock_gettime(struct wf_frame *f)
{
	struct lx_thread *t;
	enum lx_clock_kind kind = lx_cpuclock_thread((int)WF_ARG0(f), &t);

	if (kind != LX_CLOCK_THREAD)
		return kind == LX_CLOCK_DEAD ? -EINVAL : lx_raw(f);
	return put_time(WF_ARG1(f), wf_account_cpu_ns(&t->base));
}

long sysc_clock_getres(struct wf_frame *f)
{
	struct lx_thread *t;
	enum lx_clock_kind kind = lx_cpuclock_thread((int)WF_ARG0(f), &t);

	if (kind != LX_CLOCK_THREAD)
		return kind == LX_CLOCK_DEAD ? -EINVAL : lx_raw(f);
	return WF_ARG1(f) ? put_time(WF_ARG1(f), 1) : 0;
}

long lx_cpuclock_sleep(struct lx_thread *t, int64_t at, void *remaining)
{
	struct lx_thread *self = lx_self();
	uint32_t tid = lx_tid(t);

	if (t == self)
		return -EINVAL; /* as the kernel: it would never wake up */
	for (;;) {
		int64_t left = at - wf_account_cpu_ns(&t->base);

		/*
		 * Linux lets who waits on the clock of a thread that has ended sleep until a signal comes. Here the wait ends
		 * at the next look: whether the time had come before the end is not known any more.
		 */
		if (left <= 0 || lx_by_tid(tid) != t)
			return 0;
		/* No thread uses more than all of one processor: it cannot come sooner. */
		left = WF_MAX(left, RECHECK_NS);
		wf_park_begin(WF_INTR | WF_REACHED, WF_WAIT_SLEEP, (uint64_t)(wf_now() + left));
		if (wf_park(wf_now() + left) == WF_WAKE_TIMEOUT || !lx_scope_stops(self))
			continue;
		left = WF_MAX(at - wf_account_cpu_ns(&t->base), 0);
		if (remaining && put_time((uint64_t)remaining, left) < 0)
			return -EFAULT;
		return remaining ? -ERESTART_RESTARTBLOCK : -ERESTARTNOHAND;
	}
}

static struct __kernel_old_timeval timeval_of(int64_t ns)
{
	return (struct __kernel_old_timeval){ ns / WF_SEC, ns % WF_SEC / WF_US };
}

static int64_t ns_of(struct __kernel_old_timeval v)
{
	return v.tv_sec * WF_SEC + v.tv_usec * WF_US;
}

/* The thread's own time and switches; how much of it was the kernel's is told by the process's figures. */
long sysc_getrusage(struct wf_frame *f)
{
	struct lx_thread *self = lx_self();
	struct rusage u = { 0 };
	int64_t user, system, total;

	if ((int)WF_ARG0(f) != RUSAGE_THREAD)
		return lx_raw(f);
	(void)sys2(__NR_getrusage, RUSAGE_SELF, &u);
	user = ns_of(u.ru_utime) / WF_US;
	system = ns_of(u.ru_stime) / WF_US;
	total = wf_account_cpu_ns(&self->base);
	system = user + system ? total / (user + system) * system : 0;
	system = WF_MIN(system, total);
	u = (struct rusage){
		.ru_utime = timeval_of(total - system),
		.ru_stime = timeval_of(system),
		.ru_maxrss = u.ru_maxrss,
		.ru_nvcsw = (long)self->base.nr_switches,
	};
	return wf_arch_copy((void *)WF_ARG1(f), &u, sizeof(u));
}
