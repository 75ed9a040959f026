// SPDX-License-Identifier: Apache-2.0
/*
 * Tables through which the scheduler reaches what lies above it.
 *
 * sched/ includes nothing of io/ or linux/; they register these at start.
 */
#ifndef WF_SCHED_DRIVER_H
#define WF_SCHED_DRIVER_H

#include "base/base.h"

struct wf_kthread;
struct wf_thread;

/* The poller. Every function may be called from any kernel thread of weft's, several at once. */
struct wf_io_driver {
	/*
	 * Make ready every thread whose event has come; wait up to timeout_ns (0: do not, < 0: for ever).
	 * True when somebody called wake() and this call consumed it.
	 */
	bool (*poll)(int64_t timeout_ns);
	/* End one poll() that waits, now or the next one. */
	void (*wake)(void);
	/* Somebody waits for an event. */
	bool (*has_waiters)(void);
	/*
	 * Let one poll() that waits then call wf_timers_due(), exactly; the earliest deadline counts. False, or
	 * NULL: it has no clock, pass a timeout.
	 */
	bool (*arm)(int64_t deadline);
	/* A kernel thread may sleep in poll() for ever while all workers compute; a kick ends it. */
	bool may_sleep_beside;
};

struct wf_sched_hooks {
	/* t has been switched away from for the last time; release what it owned. Must not park. */
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

#endif
