// SPDX-License-Identifier: Apache-2.0
/* A kick that ends a slice in a call, while the worker is taken from the kernel thread that is in it. */
#include "arch/arch.h"
#include "arch/x86_64/sigframe.h"
#include "sched/runtime.h"
#include "sched/worker.h"
#include "sched/preempt.h"

#include "tap.h"

#include <signal.h>

static struct wf_worker worker;
static struct wf_thread thread;
static struct wf_kthread kthread = { .self = &kthread, .cur = &thread, .worker = &worker };

/* The last thing before the slice is looked at: what the monitor may do at any moment of a call. */
static void take_worker(struct wf_kthread *k)
{
	wf_store_release(&k->worker, (struct wf_worker *)NULL);
}

static void end_slice(void (*kicked)(struct wf_kthread *k))
{
	const struct wf_sched_hooks hooks = { .kicked = kicked };
	struct wf_siginfo info = { .signo = WF_SIG_KICK, .code = SI_TKILL };
	struct wf_ucontext uc = { .reg = { [WF_UC_RIP] = (uint64_t)wf_preempt_on_kick } };

	wf_rt.slice_ns = 10 * WF_MS;
	wf_rt.hooks = wf_hooks_fill(&hooks);
	wf_cpu_set_base((uintptr_t)&kthread);
	thread.attention = 0;
	thread.slice_left = 1;
	kthread.worker = &worker;
	kthread.preempt = WF_PREEMPT_SLICE;
	wf_preempt_on_kick(WF_SIG_KICK, &info, &uc);
	wf_rt.hooks = NULL;
	CHECK(thread.slice_left < 0);
	CHECK(thread.attention & WF_ATT_RESCHED);
}

TEST(a_slice_ends_at_a_kick_in_the_runtime)
{
	end_slice(NULL);
}

TEST(a_slice_ends_while_the_worker_is_taken)
{
	end_slice(take_worker);
}
