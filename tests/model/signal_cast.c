// SPDX-License-Identifier: Apache-2.0
/* See signal_cast.h. A lost signal shows as a thread that never ends, or as one that stayed pending. */
#include "signal_cast.h"

#include "arch/x86_64/sigframe.h"
#include "linux/signals.h"

struct lx_thread *target, *other;
int nr_one, nr_two, nr_rt, nr_expired, nr_continued;
uint32_t only_tid;
int64_t one_took;
static int64_t begun_at;
static uint64_t seen_mask; /* what the program blocks, as it knows it */

/* --- handlers --- */

static void on_one(int sig, void *info, void *context)
{
	model_expect(!only_tid || lx_tid(lx_self()) == only_tid, "delivered to another thread");
	model_expect(!(((struct wf_ucontext *)context)->sigmask & ONE) || seen_mask & ONE,
		     "delivered to a thread that blocks it");
	nr_one++;
	one_took = model_now() - begun_at;
}

static void on_two(int sig, void *info, void *context)
{
	nr_two++;
}

static void on_one_waits(int sig, void *info, void *context)
{
	on_one(sig, info, context);
	signal_spin(&nr_two, 1);
}

static void on_rt(int sig, void *info, void *context)
{
	const struct wf_siginfo *i = info;

	if (i->code == SI_TIMER)
		nr_expired += 1 + i->timer.overrun;
	else
		model_expect((int)i->kill.value == nr_rt, "real-time signals out of order");
	nr_rt++;
}

static void on_continue(int sig, void *info, void *context)
{
	nr_continued++;
}

void cast_begin(uint32_t nr_workers)
{
	signal_machine_reset(nr_workers);
	signal_timer_for(NULL);
	nr_one = nr_two = nr_rt = nr_expired = nr_continued = 0;
	seen_mask = 0;
	only_tid = 0;
	begun_at = model_now();
	signal_action(SIGUSR1, on_one, SA_RESTART);
	signal_action(SIGUSR2, on_two, SA_RESTART);
	signal_action(RT, on_rt, SA_RESTART);
	signal_action(SIGCONT, on_continue, SA_RESTART);
}

void cast_one_waits_for_two(void)
{
	signal_action(SIGUSR1, on_one_waits, SA_RESTART);
}

/* --- strangers --- */

static void post(struct lx_thread *t, int sig, int value)
{
	struct wf_siginfo info = { .signo = sig, .code = SI_QUEUE };

	info.kill.pid = 1;
	info.kill.value = (uint64_t)value;
	(void)lx_signal_post(lx_tid(t), sig, &info);
}

void posts_one(void *t)
{
	post(t, SIGUSR1, 0);
}

void posts_one_to_tid(void *tid)
{
	const struct wf_siginfo info = { .signo = SIGUSR1, .code = SI_QUEUE };

	(void)lx_signal_post((uint32_t)(uintptr_t)tid, SIGUSR1, &info);
}

void posts_both(void *t)
{
	post(t, SIGUSR1, 0);
	post(t, SIGUSR2, 0);
}

void posts_three(void *t)
{
	for (int i = 0; i < 3; i++)
		post(t, RT, i);
}

void ends_slice(void *worker)
{
	struct wf_kthread *k = ((struct wf_worker *)worker)->kthread;

	wf_store_release(&k->preempt, WF_PREEMPT_SLICE);
	wf_kick(k);
}

/* --- programs --- */

void spins(void *self)
{
	signal_spin(&nr_one, 1);
}

void calls_then_spins(void *self)
{
	signal_mask(SIG_BLOCK, TWO);
	spins(self);
}

void spins_for_both(void *self)
{
	signal_spin(&nr_two, 1);
	signal_spin(&nr_one, 1);
}

static void expect_call(long nr, bool may_restart)
{
	long ret = signal_call(nr, 0, 0, 0);

	model_expect(ret == 0 || ret == -EINTR, "the call ended with something else");
	model_expect(ret == 0 || !may_restart, "a handler with SA_RESTART ended a call");
	model_expect(nr_one == 1, "it ended without a handler");
}

void parks(void *self)
{
	expect_call(NR_PARK, false);
}

void parks_on(void *self)
{
	expect_call(NR_PARK, true);
}

void reads(void *self)
{
	expect_call(NR_READ, false);
}

void reads_on(void *self)
{
	expect_call(NR_READ, true);
}

void suspends(void *self)
{
	seen_mask = ONE;
	model_expect(signal_suspend(0) == -EINTR && nr_one == 1, "sigsuspend without a handler");
	model_expect(((struct lx_thread *)self)->sig_mask == ONE, "the mask is not put back");
}

void unblocks(void *self)
{
	signal_mask(SIG_UNBLOCK, ONE);
	spins(self);
}

void unblocks_later(void *self)
{
	signal_step();
	unblocks(self);
}

void waits(void *self)
{
	model_expect(signal_wait(ONE, -1) == SIGUSR1, "sigwait ended without its signal");
	nr_one++;
}

static void waits_for(int64_t ns)
{
	long sig = signal_wait(ONE, ns);

	model_expect(sig == SIGUSR1 || sig == -EAGAIN, "not what it waited for");
	nr_one += sig == SIGUSR1;
}

void waits_shortly(void *self)
{
	waits_for(0);
}

void waits_a_while(void *self)
{
	waits_for(WF_MS);
}

void ends(void *self)
{
	signal_step();
}

void cast_check(void)
{
	signal_check();
	model_expect(nr_one <= 1 && nr_two <= 1, "delivered twice");
}
