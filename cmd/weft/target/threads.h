// SPDX-License-Identifier: Apache-2.0
/*
 * A snapshot of the runtime: threads with their registers and stacks, workers, kernel threads, events.
 *
 * Used by: all of this folder, dump/ and look/. Invariant: wf_threads_read() touches the target, and is all that happens
 * while it stands still; what is done with the snapshot afterwards reads the copies first.
 */
#ifndef WF_TARGET_THREADS_H
#define WF_TARGET_THREADS_H

#include "target/layout.h"

struct wf_dump_frame {
	uint64_t pc;
	bool is_exact; /* pc is the next instruction; else a return address, the call lies before it */
	bool is_guessed; /* found through the frame pointer */
};

struct wf_dump_thread {
	uint64_t address; /* of the thread object; 0: the program has made no thread yet */
	int64_t tid;
	char name[17];
	unsigned state, wait_kind;
	uint64_t wait_what;
	int64_t wait_since, deadline; /* 0: none */
	int64_t read_at;
	uint64_t scopes; /* address of its scopes, 0: it has none, or that is not known */
	uint64_t kthread, child_tid, joined, sig_mask, sig_pending, nr_switches, run_ns;
	bool is_preempted, is_on_cpu; /* on_cpu: regs are those of its kernel thread */
	bool is_direct; /* in a call for events, with its worker, which has nothing else to do */
	int kernel_tid; /* while on one */
	long call;      /* real system call it is in, or -1 */
	uint64_t stack_low, stack_high;
	struct wf_regs regs;
	uint64_t copy_at; /* copy of the stack */
	size_t copy_bytes;
	char *copy;
	struct wf_dump_frame *frames; /* filled by unwind.c */
	size_t nr_frames;
	bool is_fiber;     /* it is a fiber's stack: no frames are looked for outside of it */
	size_t nr_runtime; /* of them, how many on top are weft's own */
	bool is_cut;       /* more frames than are kept */
};

struct wf_dump_kthread {
	uint64_t address, cur, prev, worker, ring, bound;
	int tid, inner_tid;      /* see target.h */
	unsigned insys, call_nr; /* call_nr: of the last call, which goes on while insys is set */
	bool is_door, is_helper, is_poller, is_asleep, is_direct;
	long call;
	int worker_index;  /* -1: none */
	int64_t cur_tid;   /* 0: none */
	int64_t bound_tid; /* of the thread that it runs and no other, 0: none */
};

struct wf_dump_worker {
	uint64_t address;
	unsigned index, nr_queued, nr_inbox;
	bool is_vacant, rests;
	int kernel_tid;   /* 0: none */
	int64_t cur_tid;  /* 0: none */
	int64_t awake_ns; /* how long it ran threads or looked for some, in all */
};

struct wf_dump_event {
	uint64_t cycles, a, b;
	unsigned event;
	int64_t tid;
	int kernel_tid;
};

/* The runtime's counters, in this order from WF_L_C_SWITCHES on. */
#define WF_NR_COUNTS (WF_L_C_BEGINS - WF_L_C_SWITCHES + 1)

struct wf_threads {
	bool is_started;
	uint64_t sig_pending; /* for the process: no thread wanted them yet */
	int64_t now;          /* CLOCK_MONOTONIC; of a core: the last time the runtime looked */
	struct wf_dump_thread *threads;
	size_t nr_threads, nr_alive; /* alive: all; threads: those read */
	uint64_t nr_not_begun;       /* spawned by libweft's function: no pthread runs them yet */
	struct wf_dump_kthread *kthreads;
	size_t nr_kthreads;
	struct wf_dump_worker *workers;
	size_t nr_workers;
	struct wf_dump_event *events; /* oldest first */
	size_t nr_events;
	bool has_events;              /* the program records them */
	uint64_t count[WF_NR_COUNTS]; /* of all kernel threads, those that have ended, too */
};

/* Of a table so large that no look is at all of it: rows of the other parts are taken over. */
struct wf_threads_part {
	unsigned nr, of; /* 0 of 8 */
	const struct wf_threads *before;
};

/*
 * Reads at most max_threads threads and the last max_events events; stacks of all, or of the thread `only`. False: out of
 * memory.
 */
bool wf_threads_read(struct wf_threads *out, const struct wf_layout *l, const struct wf_target *t,
		     size_t max_threads, size_t max_events, int64_t only);
/*
 * The same of a process that goes on meanwhile: without registers, stacks and events. Every row is as it was at some
 * moment, not all at the same one; a thread that began or ended while its row was read is left out. part: NULL for all.
 */
bool wf_threads_glance(struct wf_threads *out, const struct wf_layout *l, const struct wf_target *t,
		       size_t max_threads, const struct wf_threads_part *part);

/* The role of a kernel thread: a place in wf_threads_roles. */
#define WF_NR_ROLES 10
extern const char *const wf_threads_roles[WF_NR_ROLES];
unsigned wf_threads_role(const struct wf_dump_kthread *k);

void wf_threads_done(struct wf_threads *s);

#endif
