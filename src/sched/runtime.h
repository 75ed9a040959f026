// SPDX-License-Identifier: Apache-2.0
/*
 * The whole runtime: one struct, started once, rebuilt from nothing in a fork child.
 */
#ifndef WF_SCHED_RUNTIME_H
#define WF_SCHED_RUNTIME_H

#include "arch/arch.h"
#include "mem/slab.h"
#include "sched/driver.h"
#include "sched/hooks.h"
#include "sched/wheel.h"
#include "sched/worker.h"

/* See poller.h. */
struct wf_poller {
	uint32_t state;             /* (a) enum wf_poller_state; futex word */
	bool is_wanted;             /* monitor only */
	int64_t since;              /* monitor only: when that changed */
	int64_t not_before;         /* (a) */
	struct wf_kthread *kthread; /* (a) its own, once it runs */
};

enum wf_width_phase {
	WF_WIDTH_WIDE,
	WF_WIDTH_TRIAL,
	WF_WIDTH_NARROW,
};

/* See width.h. Monitor only, but for the first. */
struct wf_width {
	uint32_t is_narrow; /* (a) */
	enum wf_width_phase phase;
	int64_t looked_at;
	int64_t began; /* what is counted now, and from where */
	uint32_t served, hauls;
	int64_t until;       /* no trial before that */
	int64_t pause, stay; /* how long it was to be wide after the last trial, narrow */
	uint32_t nr_long;    /* looks in a row that found long turns */
	/* of the trial: the windows that are over, the pairs that narrow has won, what was counted wide and narrow */
	uint32_t window, wins;
	uint64_t narrow_rate, sum[2];
	int64_t took[2];
};

/* Settings of a runtime; a field that is 0 means the usual. */
struct wf_runtime_config {
	const struct wf_io_driver *io;      /* must be there */
	const struct wf_sched_hooks *hooks; /* NULL: none */
	uint32_t nr_workers;                /* at least 1 */
	size_t thread_bytes; /* of an object that begins with a struct wf_thread, if it is more than that */
	size_t min_sigstack; /* AT_MINSIGSTKSZ */
	int64_t slice_ns;    /* how long a thread has a worker while others wait */
	uint64_t seed;
	bool is_shuffled; /* schedules are random, from the seed; shuffle.h */
	bool keeps_worker; /* a call that blocks hands no worker on: threads share one kernel thread */
	bool is_realtime; /* the whole process is: FIFO, RR */
};

struct wf_runtime {
	uint32_t started;     /* (a) */
	uint32_t is_stopping; /* (a) kernel threads end where they find nothing to do */
	int pid;              /* (p) */
	char name[16];        /* (p) of the program, as the kernel has it */
	bool is_filtered; /* (a) a filter of the program's judges our own calls: no names any more */
	uint32_t nr_workers;          /* (p) */
	struct wf_worker *workers;    /* (p) */
	struct wf_kthread **kthreads; /* (a) filled in order, never removed */
	uint32_t nr_kthreads;         /* (a) */
	struct wf_kthread *door;      /* (p) */

	/* (a) kernel threads asleep, or about to be, in the poller */
	uint32_t nr_idle WF_ALIGNED(WF_CACHE_LINE);
	uint32_t nr_searching; /* (a) awake and looking for work, or a wake() on its way */
	uint32_t nr_vacant;    /* (a) workers without a carrier */
	uint32_t nr_direct;    /* (a) workers that wait with their threads; see direct.h */

	/* vacant and spare lists, kernel thread table */
	struct wf_spin lock WF_ALIGNED(WF_CACHE_LINE);
	struct wf_worker *vacant;  /* (q) */
	struct wf_kthread *spares; /* (q) */
	uint32_t nr_spares;        /* (q) */
	uint32_t nr_unbound;       /* (a) kernel threads that run whoever is ready, or will */
	struct wf_kthread *ended;  /* (q) may be used again once their tid is 0 */
	uint32_t revivals;         /* (a) how often one of those came back, or began to */
	uint32_t nr_reviving; /* (a) those that are just coming back: their tid is not known yet */

	/* (a) written by the monitor and by idle workers */
	int64_t coarse_now WF_ALIGNED(WF_CACHE_LINE);
	uint32_t has_levels; /* (a) some thread has another level than the usual one */
	uint32_t accounts;   /* (a) somebody has asked for the CPU time of a thread */
	uint32_t door_wakes; /* (a) somebody who may not make a carrier asks the door to wake one */
	uint32_t monitor_armed; /* (a) the door ticks */
	int64_t monitor_until;  /* (a) when the door looks next by itself */
	int64_t disarmed_at;    /* the monitor's own, as the next: when it last disarmed itself */
	int64_t stays_armed_until;
	/*
	 * (a) 0, or -errno: a kernel thread could not be made, ever. The maker of one may be told so after another one was
	 * refused: nobody takes it back. The other two are the monitor's own. See rescue.h. */
	int32_t refusal;
	bool is_refusal_told;
	bool is_lack_told;
	uint32_t rescue_turn;
	uint32_t nr_lazy;       /* (a) kernel threads in a call that left its worker vacant */
	uint32_t is_clock_lost; /* (a) the poller can be armed no more */
	int64_t door_told_at;   /* (a) when timers.c last told the door to look earlier */

	const struct wf_io_driver *io;      /* (p) */
	const struct wf_sched_hooks *hooks; /* (p) */
	struct wf_wheel wheel;
	struct wf_poller poller;
	struct wf_width width;
	struct wf_slab save_areas;
	/* (p) as struct wf_runtime_config has them */
	uint64_t seed;
	int64_t slice_ns;
	bool is_shuffled, keeps_worker, is_realtime;
	int64_t kernel_tick_ns; /* (p) how often the kernel interrupts a busy processor; 0: not known */
	bool is_crowded;        /* (p) there are more workers than processors */
	int64_t kernel_slice_ns;  /* (p) of carriers, where that is so */
	struct wf_worker *offers; /* (a) a hint: others are to take what is in its inbox; crowd.h */
};

extern struct wf_runtime wf_rt;

/*
 * A thread that is found in a waiting loop at the end of its slice has wasted it, and the one it waits for may be queued here:
 * a lock's holder, or one that hands the next piece of work over. So slices are short on this worker for a while, for everybody,
 * which leaves all their shares.
 */
#define WF_SPIN_SLICE_NS (2 * WF_MS)

/* How long the thread that runs on w keeps it while others wait. */
WF_INLINE int64_t wf_worker_slice(const struct wf_worker *w)
{
	return wf_habit_holds(WF_HABIT_SPINS, wf_load_hint(&w->spins))
		       ? WF_MIN(wf_rt.slice_ns, WF_SPIN_SLICE_NS)
		       : wf_rt.slice_ns;
}

/*
 * Start with the calling kernel thread as the door: builds the workers and the thread object of the caller
 * (returned, or NULL without memory); the caller's context stays where it is until wf_runtime_leave_door().
 */
struct wf_thread *wf_runtime_start(const struct wf_runtime_config *config);
/*
 * Make the kernel thread that is to carry the first worker: from then on somebody is there to go on with the main thread.
 * 0, or -errno: none could be made.
 */
long wf_runtime_staff(void);
/*
 * As if wf_runtime_start() had not been called. By its caller, which is still where it was: every thread has ended, and
 * every helper but the poller. The other kernel threads end now, if any were made.
 */
void wf_runtime_stop(void);
/*
 * Move the calling (main) thread to a worker; the kernel thread goes on as door_loop(), which never returns.
 * It calls prepare() first, as the door, while the main thread does not run yet.
 */
WF_PARKS void wf_runtime_leave_door(struct wf_thread *self, void (*prepare)(void),
				    void (*door_loop)(void *));
/* In a fork child: forget everything; the child is a plain process until it makes a thread. */
void wf_runtime_forget(void);

/* A new kernel thread, or a spare, for worker w. False: none could be made, w stays vacant. */
bool wf_rt_carry(struct wf_worker *w, bool searching);
/* By the door, when it was kicked. */
void wf_rt_door_kicked(void);
void wf_rt_make_vacant(struct wf_worker *w);
/* The same, without a carrier while no work is queued: the door polls, and its caller is back soon. */
void wf_rt_leave_vacant(struct wf_worker *w);
struct wf_worker *wf_rt_take_vacant(void);
/* wf_rt.io->poll(), counted. */
bool wf_rt_poll(int64_t timeout_ns);

/* A timer may be this late while every worker is busy. */
#define WF_MONITOR_MIN_NS (50 * WF_US)
/* Slices that may be asked for. */
#define WF_MIN_SLICE_US 100u
#define WF_MAX_SLICE_US 1000000u
#endif
