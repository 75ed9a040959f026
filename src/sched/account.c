// SPDX-License-Identifier: Apache-2.0
/*
 * How much CPU time a thread has used.
 *
 * Called by: worker.c at switches; linux/cpuclock.c, which asks.
 *
 * Until somebody asks, nothing is read at a switch: a thread is charged the steps of the coarse clock (the
 * monitor's tick, 5 to 12 ms), which is right on average, as an old kernel's tick was. From the first question
 * on the kernel thread's own CPU clock is what is shared out: read at the end of every run of more than 20 us,
 * while shorter ones are charged by the wall clock and subtracted from the next reading. So the sum over all
 * threads is the kernel's, and a thread is wrong by what the kernel took from its short runs at most.
 *
 * Considered and dropped: to read a cycle counter at every switch from the start: 8 ns of 40, for a question
 * that most programs never ask.
 */
#include "sched/account.h"
#include "sched/clock.h"
#include "sched/runtime.h"

#define CLOCK_THREAD_CPUTIME_ID 3
#define SHORT_RUN_NS (20 * WF_US)
#define READ_TRIES 8

static int64_t kthread_cpu_ns(const struct wf_kthread *k)
{
	int clock = k == wf_self_kthread() ? CLOCK_THREAD_CPUTIME_ID
					   : (int)(~(uint32_t)k->tid << 3 | 6);
	int64_t ns = 0;

	(void)sys_clock_read(clock, &ns);
	return ns;
}

void wf_account_begin(struct wf_kthread *k)
{
	k->cpu_read = kthread_cpu_ns(k);
	k->cpu_charged = 0;
	k->cpu_began = wf_now();
}

/* The time on k's clock beyond all that was charged goes to t. */
static void charge_by_clock(struct wf_kthread *k, struct wf_thread *t)
{
	int64_t read = kthread_cpu_ns(k), ns = read - k->cpu_read - k->cpu_charged;

	k->cpu_read = read;
	k->cpu_charged = ns < 0 ? -ns : 0;
	wf_store_relaxed(&t->run_ns, t->run_ns + WF_MAX(ns, 0));
}

void wf_account_leave(struct wf_kthread *k, struct wf_thread *t)
{
	int64_t now, ran;

	if (k->bound)
		return; /* all of its clock is t's */
	if (!k->cpu_began) {
		/* It ran when the first question was asked: what it used until now is known by the tick only. */
		wf_account_begin(k);
		return;
	}
	now = wf_now();
	ran = now - k->cpu_began;
	wf_store_relaxed(&k->cpu_began, now);
	if (ran < SHORT_RUN_NS) {
		wf_store_relaxed(&t->run_ns, t->run_ns + ran);
		wf_store_relaxed(&k->cpu_charged, k->cpu_charged + ran);
	} else {
		charge_by_clock(k, t);
	}
}

/* The time of t that is not charged to it yet, on k, which may switch at any moment. */
static int64_t uncharged(const struct wf_kthread *k)
{
	const struct wf_worker *w = wf_load_relaxed(&k->worker);

	if (wf_load_relaxed(&k->cpu_began))
		return kthread_cpu_ns(k) - wf_load_relaxed(&k->cpu_read) -
		       wf_load_relaxed(&k->cpu_charged);
	return w ? wf_load_relaxed(&wf_rt.coarse_now) - wf_load_relaxed(&w->slice_began) : 0;
}

static int64_t own_cpu_ns(struct wf_kthread *k, struct wf_thread *self)
{
	if (!k->cpu_began) {
		self->run_ns += WF_MAX(uncharged(k), 0);
		wf_account_begin(k);
	} else {
		charge_by_clock(k, self);
		wf_store_relaxed(&k->cpu_began, wf_now());
	}
	return self->run_ns;
}

void wf_account_bind(struct wf_kthread *k, struct wf_thread *self)
{
	if (k->cpu_began)
		charge_by_clock(k, self);
	else
		self->run_ns += WF_MAX(uncharged(k), 0);
	wf_account_begin(k);
}

void wf_account_unbind(struct wf_kthread *k, struct wf_thread *self)
{
	charge_by_clock(k, self);
	if (wf_load_relaxed(&wf_rt.accounts))
		wf_account_begin(k);
	else
		wf_store_relaxed(&k->cpu_began, (int64_t)0);
}

/* The time that will be charged for all of its run is taken off beforehand. */
void wf_account_restart(struct wf_thread *self)
{
	wf_store_relaxed(&self->run_ns, -WF_MAX(uncharged(wf_own_kthread()), 0));
}

int64_t wf_account_cpu_ns(struct wf_thread *t)
{
	struct wf_kthread *k = wf_own_kthread(), *bound;
	int64_t charged = 0;

	wf_store_relaxed(&wf_rt.accounts, 1u);
	if (t == k->cur)
		return own_cpu_ns(k, t);
	for (int i = 0; i < READ_TRIES; i++) {
		uint64_t run = wf_load_acquire(&t->nr_switches);
		int64_t ns;

		charged = wf_load_relaxed(&t->run_ns);
		bound = wf_load_acquire(&t->bound);
		k = bound ? bound : wf_load_acquire(&t->kthread);
		ns = k ? uncharged(k) : 0;
		if (wf_load_acquire(&t->bound) == bound &&
		    (bound || wf_load_acquire(&t->kthread) == k) &&
		    wf_load_acquire(&t->nr_switches) == run &&
		    wf_load_relaxed(&t->run_ns) == charged)
			return WF_MAX(charged + WF_MAX(ns, 0), 0);
	}
	return WF_MAX(charged, 0);
}
