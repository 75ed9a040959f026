// SPDX-License-Identifier: Apache-2.0
/* Hooks that nobody has handed in, which do nothing; see hooks.h. */
#include "sched/hooks.h"
#include "sched/thread.h"

static bool may_interrupt(struct wf_thread *t, void *uc)
{
	(void)t;
	(void)uc;
	return true;
}

static void let_resume(struct wf_thread *t, void *uc)
{
	(void)t;
	(void)uc;
}

static void pass_kthread(struct wf_kthread *k)
{
	(void)k;
}

static bool is_no_pc(uintptr_t pc)
{
	(void)pc;
	return false;
}

static void pass_context(void *uc)
{
	(void)uc;
}

static void pass_thread(struct wf_thread *t)
{
	(void)t;
}

static void pass(void)
{
}

static void pass_error(long error)
{
	(void)error;
}

const struct wf_sched_hooks *wf_hooks_fill(const struct wf_sched_hooks *given)
{
	static struct wf_sched_hooks hooks;

	hooks = given ? *given : (struct wf_sched_hooks){ 0 };
#define DEFAULT(hook, function) hooks.hook = hooks.hook ? hooks.hook : (function)
	DEFAULT(thread_exited, wf_thread_free);
	DEFAULT(interrupted, may_interrupt);
	DEFAULT(resuming, let_resume);
	DEFAULT(kicked, pass_kthread);
	DEFAULT(is_copy, is_no_pc);
	DEFAULT(is_spin, is_no_pc);
	DEFAULT(in_runtime, pass_context);
	DEFAULT(stands_still, pass_thread);
	DEFAULT(stranded, pass);
	DEFAULT(refused_kthread, pass_error);
	DEFAULT(lacks_rings, pass);
#undef DEFAULT
	return &hooks;
}
