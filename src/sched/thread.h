// SPDX-License-Identifier: Apache-2.0
/*
 * A thread, and the states it goes through: the first file to read.
 *
 * Thread objects are never returned to the system: a stale pointer reads a valid object whose tid differs.
 * The object that linux/ needs begins with a struct wf_thread (see wf_thread_table_init()).
 */
#ifndef WF_SCHED_THREAD_H
#define WF_SCHED_THREAD_H

#include "arch/arch.h"
#include "base/atomic.h"
#include "base/list.h"
#include "sched/habit.h"
#include "sched/wheel.h"

struct wf_kthread;
struct wf_scopes;
struct wf_worker;

/*
 * The state word: one enum wf_state, plus WF_INTR while a signal may end the wait and WF_REACHED while a scope may, plus a
 * reason (bits 16..).
 *
 *   FREE    -> NEW      wf_thread_new()   the index was popped from the free list
 *   NEW     -> READY    spawner           store, before the first push
 *   READY   -> RUNNING  the popper        plain store: whoever took it off a queue owns it
 *   RUNNING -> PARKING  the thread        store, before it is on any wait list
 *   PARKING -> RUNNING  the thread        it never left: wf_park_abort(), or it found WOKEN before the switch
 *   PARKING -> WOKEN    a waker           CAS: the registers are not saved yet, the thread or its successor goes on
 *   PARKING -> PARKED   the successor     CAS, after the registers were saved
 *   WOKEN   -> READY    the successor     its CAS lost: it pushes the thread
 *   PARKED  -> READY    a waker           CAS; the winner, and nobody else, pushes the thread
 *   RUNNING -> READY    the successor     yield, preemption, wf_gather_join(), or a call that lost its worker; then push
 *   RUNNING -> DEAD     the thread        then the successor releases it: the stack is free only after the switch
 *   DEAD    -> FREE     the successor
 *
 * Invariant: between two stores of PARKING exactly one waker's CAS succeeds, and exactly one push follows.
 */
enum wf_state {
	WF_FREE,
	WF_NEW,
	WF_READY,
	WF_RUNNING,
	WF_PARKING,
	WF_PARKED,
	WF_WOKEN,
	WF_DEAD,
};

#define WF_STATE_MASK 0xffu
#define WF_INTR 0x100u
#define WF_REACHED 0x200u /* with WF_INTR: the thread's scopes end the wait, too; scope.h */
#define WF_REASON_SHIFT 16

enum wf_reason {
	WF_WAKE_NONE,
	WF_WAKE_EVENT,       /* what was waited for */
	WF_WAKE_TIMEOUT,     /* the deadline */
	WF_WAKE_INTERRUPTED, /* a signal wants the thread, or a scope is over; only with WF_INTR */
	WF_WAKE_NR
};

/* The reason of a wait: shown in dumps. */
enum wf_wait {
	WF_WAIT_NONE,
	WF_WAIT_FUTEX,  /* what: address */
	WF_WAIT_FD,     /* what: descriptor */
	WF_WAIT_POLL,   /* what: number of descriptors */
	WF_WAIT_SLEEP,  /* what: deadline */
	WF_WAIT_SIGNAL, /* what: set */
	WF_WAIT_CALL,   /* a real call in the kernel; what: number */
	WF_WAIT_CHILD,  /* what: as the first argument of wait4(), or of waitid() */
	WF_WAIT_UNUSED, /* for another function: to the program it has ended */
	WF_WAIT_EVENT,  /* what: address of a struct wf_sync_event */
	WF_WAIT_RECV,   /* what: address of a struct wf_chan */
	WF_WAIT_SEND,   /* the same */
	WF_WAIT_SELECT, /* what: number of operations */
	WF_WAIT_GROUP,  /* what: struct wf_group */
	WF_WAIT_NR
};

/* Attention bits: why the gate must not return to the program at once. */
#define WF_ATT_RESCHED 1u
#define WF_ATT_SIGNAL 2u
#define WF_ATT_BIND 4u /* whether it is bound has to change */

#define WF_WOKE_BITS 32
#define WF_VTIME_SPARE (64 - 48) /* bits that wf_thread.vtime lacks */

/* A level for each nice value from -20 to 19. */
#define WF_LEVELS 40
#define WF_LEVEL_NORMAL 20
#define WF_SLICE_NS (10 * WF_MS) /* unless weft run says otherwise */

/*
 * (c) constant after creation   (o) the thread itself      (w) the worker that runs it
 * (q) under the queue's lock    (a) atomic, anyone         (p) written before publication, then (c)
 */
struct wf_thread {
	void *sp;                   /* (w) saved context; valid while not on a CPU */
	uintptr_t tls;              /* (w) FS base, while not on a CPU */
	uint32_t attention;         /* (a) WF_ATT_* */
	uint32_t state;             /* (a) */
	struct wf_kthread *kthread; /* (a) runs us now, or NULL */
	/* (a) the kernel thread that is ours alone, or NULL; see bind.h */
	struct wf_kthread *bound;
	struct wf_thread *next; /* (q) link in a run queue or inbox */
	struct wf_worker *home; /* (w) where we last ran */
	/* (w) when its turn comes, on the clock of the queue that it is in or ran from last; see runq.h */
	uint64_t vtime : 48;
	uint64_t turn : 16; /* (w) how long it usually runs before it waits, in the same unit */
	uint8_t level;      /* (a) by nice value: 0 has the largest weight */
	uint8_t wait_kind;  /* (o) enum wf_wait */
	bool is_preempted;  /* (w) a saved signal frame is its state: sp + WF_RESUME_UC */
	/* (o) read by the monitor, which is to interrupt the call that the thread is in if it lasts */
	bool breaks_call;
	uint8_t hog : 4;         /* (o) a habit */
	uint8_t slices_here : 4; /* (o) a habit: STAYED */
	/* (q), a hint without the lock: queued where the owner of a briefly held lock runs; thieves wait. gather.h */
	bool gathers;
	uint8_t parks_after_wake; /* (o), read by thieves; a habit: PARKS_SOON */
	/* (o) the call that it is in keeps the program's vector registers, and so does a switch; see gate.S */
	bool keeps_vectors;
	uint64_t wait_what; /* (o) */
	int64_t wait_since; /* (o) coarse clock */
	/* One word: whoever owns the thread writes it, and that is itself, its queue's lock, or who has won to wake it. */
	/* (o) cycles at the last unpark by us, 0: none since the last park, or it is not looked at */
	uint64_t woke_at : WF_WOKE_BITS;
	uint64_t nr_wakes : 3;  /* (o) since one was looked at */
	uint64_t has_woken : 1; /* (o) somebody, ever */
	/* (w), or of its waker; a habit: HURRIES */
	uint64_t hurry : 8;
	/* (o) a habit; and the end of the peer's descriptor */
	uint64_t peer_here : 4;
	uint64_t peer_fd : 16;
	uint64_t nr_switches; /* (w) */
	int64_t run_ns;       /* (a) written by the worker at switches; see account.c */
	/* (a) its own, from its first scope until it ends; NULL: it has had none. Each park reads it: in a line that is warm. */
	struct wf_scopes *scopes;
	uint32_t tid;       /* (p) */
	int32_t slice_left; /* (w) ns; below 0: the monitor saw it run for so long, to the end */
	struct wf_timer timer WF_ALIGNED(WF_CACHE_LINE); /* deadline of the current park */
	/* (o) what the program has in the base register, while the thread is in the runtime; see self.h */
	uintptr_t user_base;
	/* (o) where it was preempted last; how often it was there, having used no time; its kernel thread's since when */
	uint64_t preempted_at;
	uint32_t nr_still;
	int64_t still_since_ns;
	uint32_t index;      /* (c) slot in the thread table */
	uint32_t generation; /* (a) how often this slot was used */
	/* (o) the real call that it is in is made again if it is ended for others; see rescue.h */
	bool repeats_call;
	bool has_own_files; /* (o) bound, and its kernel thread has a table of descriptors of its own; io/fdtab.h */
};

/* A wait without a deadline touches two cache lines. */
_Static_assert(offsetof(struct wf_thread, timer) == 2 * WF_CACHE_LINE, "cache lines");
_Static_assert(offsetof(struct wf_thread, user_base) == WF_T_USER_BASE, "gate.S relies on it");
_Static_assert(offsetof(struct wf_thread, sp) == WF_T_SP, "gate.S relies on it");
_Static_assert(offsetof(struct wf_thread, keeps_vectors) == WF_T_KEEPS_VECTORS,
	       "gate.S relies on it");
_Static_assert(offsetof(struct wf_thread, attention) == WF_T_ATTENTION, "gate.S relies on it");

WF_INLINE enum wf_state wf_state_of(uint32_t word)
{
	return (enum wf_state)(word & WF_STATE_MASK);
}

/* The peer of t ran, more often than not, where t did, right after it was sent something; see peer.h. */
WF_INLINE bool wf_thread_is_beside_peer(const struct wf_thread *t)
{
	return wf_habit_holds(WF_HABIT_PEER_HERE, t->peer_here);
}

/* Thread table: every slot ever used, for dumps, signals and credentials. */
#define WF_MAX_THREADS (1u << 20)
#define WF_TID_BASE (1u << 22) /* above the kernel's PID_MAX_LIMIT */
/* The clock of a thread is a number with ~tid shifted left by 3: a tid beyond this one has none. */
#define WF_TID_END (1u << 28)
#define WF_TID_GENERATIONS ((WF_TID_END - WF_TID_BASE) / WF_MAX_THREADS)

struct wf_thread_table {
	struct wf_spin lock;
	char *slots;            /* (c) */
	size_t object_bytes;    /* (c) */
	uint32_t max_slots;     /* (c) */
	uint32_t nr_slots;      /* (a) grows only */
	struct wf_thread *free; /* (q) linked by next */
	/* (c) so that processes which share locks have different tids; see thread.c */
	uint32_t index_salt, generation_salt;
};

/* For readers from outside (obs/inspect.c); everybody else goes through the functions below. */
extern struct wf_thread_table wf_thread_table;

/* A zeroed-state thread with a fresh tid, or NULL when there is no memory or no slot left. */
struct wf_thread *wf_thread_new(void);
void wf_thread_free(struct wf_thread *t);
/* The thread with that tid if it is alive (neither FREE nor DEAD), else NULL. */
struct wf_thread *wf_thread_by_tid(uint32_t tid);
/* Is or was it one of ours? False: another process's. */
bool wf_thread_is_our_tid(uint32_t tid);
/* Slots in use are below this number. */
uint32_t wf_thread_slots(void);
struct wf_thread *wf_thread_slot(uint32_t index);
void wf_thread_table_init(size_t object_bytes);
/* As if it had never been, before the first thread runs. */
void wf_thread_table_done(void);

#endif
