// SPDX-License-Identifier: Apache-2.0
/* A kernel thread of ours, and which one the caller is; see worker.h for what it carries. */
#ifndef WF_SCHED_KTHREAD_H
#define WF_SCHED_KTHREAD_H

#include "arch/arch.h"
#include "sched/thread.h"
#include "sys/rseq.h"
#include "trace/trace.h"

struct wf_worker;

/* Counters of each kernel thread: WF_COUNTER(member, name in --stats). */
#define WF_COUNTERS                                                                                \
	WF_COUNTER(switches, "switches")                                                           \
	WF_COUNTER(parks, "parks")                                                                 \
	WF_COUNTER(unparks, "unparks")                                                             \
	WF_COUNTER(steals, "steals")                                                               \
	WF_COUNTER(handoffs, "hand-offs")                                                          \
	WF_COUNTER(preempts, "preemptions")                                                        \
	WF_COUNTER(kicks, "kicks")                                                                 \
	WF_COUNTER(polls, "polls")                                                                 \
	WF_COUNTER(idles, "idle sleeps")                                                           \
	WF_COUNTER(directs, "direct waits")                                                        \
	WF_COUNTER(rests, "rests")                                                                 \
	WF_COUNTER(spawns, "spawns")                                                               \
	WF_COUNTER(begins, "spawns begun")

struct wf_counters {
#define WF_COUNTER(member, name) uint64_t member;
	WF_COUNTERS
#undef WF_COUNTER
};

struct wf_kthread {
	struct wf_kthread *self; /* (c) */
	/* (o) thread whose context is loaded, NULL in the scheduler's own context */
	struct wf_thread *cur;
	/* (o) in the vDSO on our behalf: a kick defers, as in our own text, and its system call is the kernel's */
	bool in_clock;
	struct wf_worker *worker; /* (a) NULL: a spare, or its worker was taken during a call */
	void *loop_sp;            /* (o) the scheduler's own context, while a thread runs */
	struct wf_thread *prev;   /* (o) switched away from, not yet dealt with */
	uint32_t prev_action;     /* (o) */
	struct wf_worker *joins;  /* (o) for WF_PREV_JOIN */
	/* (a) 0; 1 in a call that may block; 2 the worker was taken meanwhile */
	uint32_t insys;
	uint32_t direct;      /* (a) enum wf_direct */
	int64_t direct_until; /* (a) when such a wait ends; written before it begins */
	uint32_t kick_sent;   /* (a) one kick outstanding at most */
	uint32_t preempt;     /* (a) the monitor wants the CPU for somebody else */
	/* These three stay when it comes back as another kernel thread: others are at them that know nothing of that. */
	uint32_t nr_preempting; /* (a) who are about to say so, and to kick it; see insys.c */
	void *errand; /* (a) a call that another kernel thread asks it to make; linux/remote.c */
	struct wf_trace_ring *ring; /* (a) WF_TRACE_RINGS of them, or NULL; see record.h */
	bool takes_altstack;        /* (o) the next kick puts the alternate stack in place */
	uint32_t sleep_word;        /* (a) 1: a spare asleep on it */
	bool is_searching;          /* (o) holds one of wf_rt.nr_searching */
	bool is_lazy;               /* (o) counted in wf_rt.nr_lazy */
	bool is_door;     /* (c) the main kernel thread: takes signals, never runs threads */
	bool is_helper;   /* (c) runs no threads either; see wf_staff_spawn_helper() */
	void *helper_arg; /* (c) */
	bool is_poller;   /* (o) the helper of poller.c */
	bool is_ending;   /* (a) its bound thread has ended */
	bool is_revived;  /* by its maker: it had ended, and comes back */
	/* (o) the kernel ties something of the program to it, which would end with it: see wf_kthread_tie() */
	bool is_tied;
	/* (a) the last request to all kernel threads that it set out to answer, and has answered; linux/everybody.c */
	uint32_t request_claimed, request_answered;
	long request_ret;        /* (p) before request_answered: what that one returned here */
	struct wf_thread *bound; /* (o) runs nothing else; see bind.h */
	uint32_t bound_is_ready; /* (a) futex word */
	int64_t bound_until;     /* (o) deadline of its park */
	/* (o) bound ones whose threads we made ready under a lock, to be woken when it is given up */
	struct wf_kthread *woken[8];
	uint32_t nr_woken;
	bool holds_wakes;       /* (o) */
	int tid;                /* (a) kernel tid; 0 before it exists and once it has ended */
	uint32_t index;         /* (c) */
	uintptr_t tls;          /* (o) FS base that is loaded */
	void *stack, *altstack; /* (c) */
	void *save_area;        /* (o) room for the next preempted context */
	uint64_t rng;           /* (o) shuffle.h */
	struct wf_kthread *next_spare; /* (q) among the spares, or those that end */
	uint32_t call_nr;              /* (a) system call in progress, for dumps */
	/* (a) written by its own thread; see account.c. 0 began: nothing was read yet */
	int64_t cpu_read, cpu_charged, cpu_began;
	struct wf_counters count; /* (o) */
	bool is_watched;          /* (o) rseq is registered; see peer.h */
	struct sys_rseq rseq;     /* (o), and the kernel's */
} WF_ALIGNED(WF_CACHE_LINE);

_Static_assert(offsetof(struct wf_kthread, self) == WF_KT_SELF, "gate.S relies on it");
_Static_assert(offsetof(struct wf_kthread, cur) == WF_KT_CUR, "gate.S relies on it");
_Static_assert(offsetof(struct wf_kthread, in_clock) == WF_KT_IN_CLOCK, "gate.S relies on it");

/* The kernel thread that we run on; NULL when it is not weft's. */
WF_INLINE struct wf_kthread *wf_self_kthread(void)
{
	return (struct wf_kthread *)wf_cpu_base();
}

/* The same where it is known to be one of ours. */
WF_INLINE struct wf_kthread *wf_own_kthread(void)
{
	return (struct wf_kthread *)wf_cpu_self_word(WF_KT_SELF);
}

/*
 * The calling kernel thread must never end: a child that it made may have asked for a signal when its parent does
 * (PR_SET_PDEATHSIG), its requests to io_uring would be cancelled.
 */
WF_INLINE void wf_kthread_tie(void)
{
	struct wf_kthread *k = wf_self_kthread();

	if (k)
		k->is_tied = true;
}

/* The running thread, on a kernel thread of ours. Stays right across parks: a thread is itself. */
WF_INLINE struct wf_thread *wf_self(void)
{
	return (struct wf_thread *)wf_cpu_self_word(WF_KT_CUR);
}

/* Linux keeps state at k, a bound thread's or the poller's slice, and what k makes would inherit it. */
WF_INLINE bool wf_has_own_state(const struct wf_kthread *k)
{
	return k->bound || k->is_ending || k->is_poller;
}

#define WF_TRACE(k, ev, a, b)                                                                      \
	do {                                                                                       \
		if (WF_UNLIKELY(wf_load_hint(&wf_trace.wanted)))                                   \
			wf_trace_write(wf_load_relaxed(&(k)->ring), (ev),                          \
				       (k)->cur ? (k)->cur->tid : 0, (uint64_t)(a),                \
				       (uint64_t)(b));                                             \
	} while (0)

#endif
