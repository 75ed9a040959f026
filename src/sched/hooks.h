// SPDX-License-Identifier: Apache-2.0
/*
 * The scheduler's questions to those above it, which it does not include: they hand this table in at start (runtime.h).
 *
 * A hook that is NULL does nothing: a runtime without the gate needs none of them.
 */
#ifndef WF_SCHED_HOOKS_H
#define WF_SCHED_HOOKS_H

#include "base/base.h"

struct wf_kthread;
struct wf_thread;

struct wf_sched_hooks {
	/* t has been switched away from for the last time; release what it owned, and t. Must not park. */
	void (*thread_exited)(struct wf_thread *t);
	/*
	 * A kick found the program's own code at the interrupted context uc (a struct ucontext): deliver
	 * signals by editing it. False when pc is in code that must not be interrupted.
	 */
	bool (*interrupted)(struct wf_thread *t, void *uc);
	/* A preempted thread is about to go on through the saved context uc: the same. */
	void (*resuming)(struct wf_thread *t, void *uc);
	/* Every kick, before anything else, also on a spare or idle kernel thread. */
	void (*kicked)(struct wf_kthread *k);
	/* pc lies in a copy of the program's instructions that stands in the runtime's text. */
	bool (*is_copy)(uintptr_t pc);
	/* The program's code at pc is a loop that waits for another thread. A hint. */
	bool (*is_spin)(uintptr_t pc);
	/* The kick found the runtime itself, at uc: move pc out of the few spots that a kick must not pass. */
	void (*in_runtime)(void *uc);
	/*
	 * A kick was to preempt t in the program's own code, again where it was, though it did not run in between: it waits
	 * there, in a page fault. Give it a kernel thread of its own for as long.
	 */
	void (*stands_still)(struct wf_thread *t);
	/* By the door: somebody is ready, and runs only when a call ends. */
	void (*stranded)(void);
	/* By the door, once: no further kernel thread could be made, for this -errno. */
	void (*refused_kthread)(long error);
	/* By the door, once: some kernel threads keep no events. */
	void (*lacks_rings)(void);
};

/* The table for wf_rt.hooks, in which all are there. given: NULL, or what is copied. */
const struct wf_sched_hooks *wf_hooks_fill(const struct wf_sched_hooks *given);

#endif
