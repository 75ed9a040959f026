// SPDX-License-Identifier: Apache-2.0
/*
 * Workers.
 *
 * A worker is the right to run threads, with the queue they wait in; there are as many as processors. A
 * kernel thread carries at most one worker at a time. One that blocks in the kernel gives its worker to a
 * spare kernel thread (hand-off), and becomes a spare itself when its call returns.
 */
#ifndef WF_SCHED_WORKER_H
#define WF_SCHED_WORKER_H

#include "sched/kthread.h"
#include "sched/runq.h"
#include "sched/thread.h"
#include "sys/syscall.h"

/* The successor of a switch does this with the thread that was switched away from. */
enum wf_prev_action {
	WF_PREV_NONE,
	WF_PREV_PARK,     /* commit PARKING -> PARKED, or push if already woken */
	WF_PREV_YIELD,    /* push behind its equals */
	WF_PREV_GAVE_WAY, /* push before those that used the CPU last, as long as it has slice left */
	WF_PREV_PREEMPT, /* push: its slice is over */
	WF_PREV_JOIN,    /* push on another worker, kthread.joins */
	WF_PREV_REHOME,  /* its call returned without a worker: push where it can run */
	WF_PREV_DEAD,    /* release it */
};

struct wf_worker {
	struct wf_kthread *kthread;    /* (a) carrier, NULL while vacant */
	uint32_t index;                /* (c) */
	uint32_t is_vacant;            /* (a) on the vacant list */
	struct wf_worker *next_vacant; /* (q) */
	uint32_t picks;                /* (a) written by its carrier */
	uint32_t newborn_in; /* (w) picks when a new thread came last while nobody waited */
	uint32_t turn_ns;    /* (a) how long a thread has it at a time, on average; see monitor.c */
	uint32_t slice_seq;  /* (a) grows whenever a new slice begins */
	uint32_t seen_seq;   /* monitor only */
	uint32_t seen_picks; /* monitor only */
	int64_t seen_picks_at; /* monitor only */
	int64_t seen_turn_ns; /* monitor only: how long a turn was, on average, before its last look */
	int64_t seen_at;      /* monitor only: when the slice began */
	uint32_t seen_calls;   /* monitor only */
	uint32_t broken_calls; /* monitor only: the call that was interrupted last */
	uint32_t calls;        /* (a) blocking-capable calls made */
	/* (a) a hint for the monitor: a woken thread is queued here; the running one is preempted after its millisecond */
	bool wants_look;
	uint32_t woken_in;             /* (a) a hint: picks at that time */
	const struct wf_thread *woken; /* (a) a hint: that thread, if it is no hog */
	int64_t told_at; /* (a) a hint: when its carrier was told of that thread; 0: not yet */
	/* (a) a hint, until the monitor's next look: it has slept */
	bool has_idled;
	uint32_t rests;          /* (a) futex word; see width.h */
	uint32_t served;         /* (a) transfers that its threads have made; width.c */
	uint32_t hauls;          /* (a) how often it took threads from others */
	uint64_t rng;            /* (w) */
	uint32_t searches;       /* (w) */
	uint32_t yields_left;    /* (w) that may be in vain, until it is looked whether they are */
	uint32_t yields_since;   /* (w) picks at the last look */
	uint64_t yields_at;      /* (a) cycles at the last look */
	uint64_t yielded_at;     /* (w) cycles at the last one that the kernel heard of */
	uint16_t direct_pause;   /* (w) waits until a direct one is tried again; see direct.c */
	uint16_t direct_trouble; /* (w) how long the next pause is */
	uint64_t polled_at;      /* (a) cycles, a hint: when a poll ended */
	uint64_t
		poll_due; /* (w) cycles: a turn that begins later looks whether there is something to poll for */
	uint64_t found_in;   /* (w) turn_began of the turn in which data was found last */
	uint8_t search_pays; /* (w) a habit */
	uint8_t peers_here; /* (a) a habit, a hint: as wf_thread.peer_here, of all its threads; see peer.h */
	int64_t slice_began; /* (w) coarse clock */
	int64_t awake_ns,
		awake_since; /* (a) written by its carrier, for who looks from outside; see wf_worker_sleeps() */
	uint8_t spins; /* (a) a habit, a hint; see wf_worker_slice() */
	uint64_t
		turn_began; /* (w) cycles, a hint: what ran since is not charged yet; 0: not known */
	struct wf_runq rq;
	/* (a) woken from outside; newest first */
	struct wf_thread *inbox WF_ALIGNED(WF_CACHE_LINE);
	/* (a), a hint: the newest of them gathers. Thieves may not look into a thread that they do not own. */
	bool inbox_gathers;
} WF_ALIGNED(WF_CACHE_LINE);

/*
 * w has nothing to do from now on, or again has. Its time awake is awake_ns and, unless awake_since is 0, what has passed
 * since then. Nobody in the process reads it, and the moments are those that are known where a worker goes to sleep: to
 * run a thread costs nothing more. Who looks from outside sees a change under way by looking twice.
 */
WF_INLINE void wf_worker_sleeps(struct wf_worker *w, int64_t now)
{
	int64_t since = w->awake_since;

	if (!since)
		return;
	wf_store_relaxed(&w->awake_since, (int64_t)0);
	wf_store_relaxed(&w->awake_ns, w->awake_ns + WF_MAX(now - since, 0));
}

WF_INLINE void wf_worker_wakes(struct wf_worker *w, int64_t now)
{
	if (!w->awake_since) /* a direct wait that came too late to begin */
		wf_store_relaxed(&w->awake_since, now);
}

/* Somebody carries w, and a thread runs on it. Both may change at any moment: a hint. */
WF_INLINE bool wf_worker_is_running(const struct wf_worker *w)
{
	struct wf_kthread *k = wf_load_acquire(&w->kthread);

	return k && wf_load_relaxed(&k->cur) && !wf_load_relaxed(&k->direct);
}

/*
 * Moving a thread that was served moments ago costs about this much: what it works on has to be fetched from another
 * processor's caches. For a shorter wait than that it is better off where it ran last.
 */
#define WF_MOVE_NS (200u * 1000)

/* A thread queued at w will probably run before it could be moved to another worker. A hint. */
WF_INLINE bool wf_worker_comes_soon(const struct wf_worker *w)
{
	uint64_t turn_ns = wf_load_hint(&w->turn_ns);

	return turn_ns <= WF_MOVE_NS && wf_worker_is_running(w) &&
	       turn_ns * (wf_runq_nr(&w->rq) + 1) <= WF_MOVE_NS;
}

#define WF_MAX_WORKERS 1024
#define WF_MAX_KTHREADS                                                                            \
	32768 /* more mappings than for twice as many threads Linux does not allow as it comes */

/* The demands in kthread.preempt. */
#define WF_PREEMPT_SLICE 1u /* the slice is over */
/* a thread with slice left was woken: the running one keeps the rest of its own */
#define WF_PREEMPT_WAKE 2u
/* A woken thread may take the CPU from one that has run this long: shorter would switch for nothing. */
#define WF_WAKE_GRANULARITY_NS WF_MS

/* Put a READY thread where it will run. From any weft kernel thread. */
void wf_worker_ready(struct wf_thread *t);
/* The same on a worker that is not ours, and runs somebody as far as we know. */
void wf_worker_ready_on(struct wf_worker *w, struct wf_thread *t);

/* Next thread of w's own: inbox, hand-off slot, queue. Does not search elsewhere. */
struct wf_thread *wf_worker_pick(struct wf_worker *w);
/* self, which runs on w, is charged for it. True: no other thread's turn has come, and it goes on, with a new slice if it had none. */
bool wf_worker_keeps(struct wf_worker *w, struct wf_thread *self);
/* Make the threads ready whose descriptors are. */
void wf_worker_poll(void);
/* A poll() of a kernel thread that is no idle worker's swallowed a wake-up meant for one, or did not. */
void wf_worker_pass_wake_on(bool is_swallowed);
/* Leave the running thread; returns when it runs again, maybe on another kernel thread. */
WF_PARKS void wf_worker_switch_away(enum wf_prev_action action);
/* The same for a context that is never resumed by the usual path (DEAD, or a saved signal frame). */
WF_NORETURN void wf_worker_switch_last(struct wf_kthread *k, enum wf_prev_action action);
/* First thing after any switch: deal with the predecessor. */
void wf_worker_finish_switch(struct wf_kthread *k);
/*
 * Charge k's thread for its time on w. is_rough: it does not matter exactly, since nobody waits for w or the thread lets all
 * others run; a look at the clock is a third of a switch.
 */
void wf_worker_charge(struct wf_kthread *k, struct wf_worker *w, bool is_rough);
/* From now on time on w is charged to the thread that runs. */
void wf_worker_begin_turn(struct wf_worker *w);
/* t, which the caller owns, becomes ready on w. */
void wf_worker_push(struct wf_worker *w, struct wf_thread *t, enum wf_place place);
/* From the loop of k, the caller's: run t, which the caller owns, on k's worker. Returns when threads have nothing left to run there. */
void wf_worker_enter(struct wf_kthread *k, struct wf_thread *t);
/* The same of the thread that k is bound to, when it can run. */
void wf_worker_enter_bound(struct wf_kthread *k);

/* The caller's kernel thread carries no worker: take one, or go where one is. */
WF_PARKS void wf_worker_go_on(void);
#endif
