// SPDX-License-Identifier: Apache-2.0
/* nanosleep, clock_nanosleep, sched_yield, pause: waiting for time or for nothing. */
#include "linux/abi.h"
#include "linux/call.h"
#include "linux/calls.h"
#include "linux/cpuclock.h"
#include "linux/deadline.h"
#include "linux/scope.h"
#include "linux/sigwant.h"
#include "sched/account.h"
#include "sched/clock.h"

#define CLOCK_MONOTONIC 1
#define CLOCK_BOOTTIME 7
#define CLOCK_TAI 11
#define TIMER_ABSTIME 1

#define USUAL_SLACK_NS (50 * WF_US)

/*
 * A thread that allows its sleeps more slack than usual sleeps until a round number, as others that do: one
 * wake-up for all of them. The others get no slack: they pay nothing for it.
 */
static int64_t with_slack(const struct lx_thread *self, int64_t deadline)
{
	uint64_t step;

	if (self->timer_slack_ns <= USUAL_SLACK_NS || deadline >= WF_NEVER - self->timer_slack_ns)
		return deadline;
	step = 1ull << (63 - __builtin_clzl((uint64_t)self->timer_slack_ns));
	return (int64_t)WF_ALIGN_UP((uint64_t)deadline, step);
}

/* Until deadline; *remaining of a relative sleep is written when a signal ends it. */
static long sleep_until(int64_t deadline, void *remaining)
{
	struct lx_thread *self = lx_self();
	int64_t until = with_slack(self, deadline);

	for (;;) {
		struct __kernel_timespec left;
		int64_t ns;

		wf_park_begin(WF_INTR | WF_REACHED, WF_WAIT_SLEEP, (uint64_t)deadline);
		if (wf_park(until) == WF_WAKE_TIMEOUT)
			return 0;
		if (!lx_scope_stops(self))
			continue;
		ns = deadline - wf_now();
		if (ns <= 0)
			return 0; /* as the kernel: that it is over counts for more than why it woke */
		left = (struct __kernel_timespec){ ns / WF_SEC, ns % WF_SEC };
		if (remaining && wf_arch_copy(remaining, &left, sizeof(left)) < 0)
			return -EFAULT;
		return remaining ? -ERESTART_RESTARTBLOCK : -ERESTARTNOHAND;
	}
}

static bool is_over(const void *user_timespec, int clock)
{
	struct __kernel_timespec at;
	int64_t now = 0;

	return wf_arch_copy(&at, user_timespec, sizeof(at)) < 0 ||
	       sys_clock_read(clock, &now) < 0 || at.tv_sec < now / WF_SEC ||
	       (at.tv_sec == now / WF_SEC && at.tv_nsec <= now % WF_SEC);
}

long sysc_nanosleep(struct wf_frame *f)
{
	int64_t deadline = 0;
	long ret = lx_deadline_relative((const void *)WF_ARG0(f), &deadline);

	return ret < 0 ? ret : sleep_until(deadline, (void *)WF_ARG1(f));
}

static long sleep_on_thread(struct wf_frame *f, struct lx_thread *t)
{
	bool is_absolute = WF_ARG1(f) & TIMER_ABSTIME;
	struct __kernel_timespec ts;

	if (wf_arch_copy(&ts, (const void *)WF_ARG2(f), sizeof(ts)) < 0)
		return -EFAULT;
	if (ts.tv_sec < 0 || ts.tv_nsec < 0 || ts.tv_nsec >= WF_SEC ||
	    ts.tv_sec > WF_NEVER / WF_SEC / 2)
		return -EINVAL;
	return lx_cpuclock_sleep(t,
				 ts.tv_sec * WF_SEC + ts.tv_nsec +
					 (is_absolute ? 0 : wf_account_cpu_ns(&t->base)),
				 is_absolute ? NULL : (void *)WF_ARG3(f));
}

long sysc_clock_nanosleep(struct wf_frame *f)
{
	int clock = (int)WF_ARG0(f);
	const void *user = (const void *)WF_ARG2(f);
	int64_t deadline = 0;
	struct lx_thread *t;
	long ret;

	if (clock == 3 /* CLOCK_THREAD_CPUTIME_ID */)
		return -EOPNOTSUPP; /* one's own clock stands still then */
	switch (lx_cpuclock_thread(clock, &t)) {
	case LX_CLOCK_DEAD:
		return -EINVAL;
	case LX_CLOCK_THREAD:
		return sleep_on_thread(f, t);
	case LX_CLOCK_KERNEL:
		break;
	}
	if (clock != 0 && clock != CLOCK_MONOTONIC && clock != CLOCK_BOOTTIME && clock != CLOCK_TAI)
		/* the CPU time of processes, or none at all: the kernel's business */
		return lx_blocking(f, true);
	if (WF_ARG1(f) & TIMER_ABSTIME) {
		do { /* a clock that was set back meanwhile has not reached it yet */
			ret = lx_deadline_absolute(user, clock, &deadline);
			if (ret == 0)
				ret = sleep_until(deadline, NULL);
		} while (ret == 0 && clock != CLOCK_MONOTONIC && !is_over(user, clock));
		return ret;
	}
	ret = lx_deadline_relative(user, &deadline);
	return ret < 0 ? ret : sleep_until(deadline, (void *)WF_ARG3(f));
}

long sysc_sched_yield(struct wf_frame *f)
{
	(void)f;
	wf_yield();
	return 0;
}
