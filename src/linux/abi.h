// SPDX-License-Identifier: Apache-2.0
/*
 * The Linux thread ABI in user space: what all files of linux/ share.
 *
 * A handler answers one system call: it takes the saved registers and returns what the kernel would, a value
 * or -errno. It runs on the caller's stack as plain blocking code and may park. -ERESTART* mean what they
 * mean in the kernel: "interrupted, a signal is waiting"; lx_signal_exit() turns them into EINTR or a restart.
 */
#ifndef WF_LINUX_ABI_H
#define WF_LINUX_ABI_H

#include "arch/arch.h"
#include "sched/park.h"
#include "sched/runtime.h"
#include "sched/worker.h"
#include "sys/syscall.h"

#include <errno.h>

#define ERESTARTSYS 512           /* restart if the handler has SA_RESTART */
#define ERESTARTNOINTR 513        /* always restart */
#define ERESTARTNOHAND 514        /* EINTR if a handler runs, else restart */
#define ERESTART_RESTARTBLOCK 516 /* the same, with a deadline kept */

#define LX_SS_AUTODISARM (int)(1u << 31) /* of the flags of an alternate stack */

#define LX_FIRST_REALTIME                                                                          \
	32 /* below: at most one of a number is pending, for the thread and for the process */

/* SIGKILL and SIGSTOP, which no mask holds. */
#define LX_UNBLOCKABLE (1ull << 8 | 1ull << 18)
/* Raised by an instruction: they reach us first. */
#define LX_FAULTS                                                                                  \
	(lx_bit(SIGSEGV) | lx_bit(SIGBUS) | lx_bit(SIGFPE) | lx_bit(SIGILL) | lx_bit(SIGTRAP) |    \
	 lx_bit(SIGSYS))
#define LX_PERSONALITY_QUERY 0xffffffffu

/* One queued signal. */
struct lx_sigq {
	struct wf_list link;
	struct wf_siginfo info;
};

/* The signals that are pending for a thread, or for the process. */
struct lx_pending {
	struct wf_spin lock;
	uint32_t owner; /* (q) tid of the thread; 0: the process, or a thread that has ended */
	uint64_t set;   /* (a) what can be taken; written under the lock */
	struct wf_list queue; /* (q) struct lx_sigq, oldest first */
};

/* A thread's wait in the futex table; see futex.c. */
struct lx_futex_wait {
	struct wf_list link; /* (q) in a bucket, or empty */
	struct lx_thread *owner;
	uint32_t *addr;      /* (q) key; changes by requeue */
	uint32_t *pi_target; /* (q) only a requeue to this word ends the wait; NULL: a plain one */
	uint32_t bitset;     /* (q) */
	bool is_pi;          /* (q) waits for ownership: an unlock hands the word over */
	bool is_lock;        /* (q) the word looks like a contended lock */
};

#define LX_FUTEX_VECTOR_MAX 128u /* FUTEX_WAITV_MAX */

/* An area for restartable sequences, registered with us only; see sysc_rseq(). */
struct lx_rseq {
	uintptr_t area; /* 0: none */
	uint32_t bytes, signature;
};

/* (legend: sched/thread.h) */
struct lx_thread {
	struct wf_thread base;

	struct lx_futex_wait futex WF_ALIGNED(WF_CACHE_LINE);
	uint32_t *child_tid; /* (o) cleared and woken when the thread has left its stack */
	uint32_t *
		joined; /* (a) for dumps: what libweft's joiners of it wait for; see native/thread.h */
	void *ended;    /* (o) NULL, or what on_thread_gone is told of */
	struct wf_list exit_link; /* (q) in the futex bucket of child_tid */
	uint32_t *robust_head;    /* (o) struct robust_list_head */
	/* (a) groups of buckets where somebody waited for a PI lock of this thread's; see lx_futex_thread_ended() */
	uint64_t pi_groups;
	struct lx_rseq rseq; /* (o) */

	struct lx_pending pending;
	uint64_t sig_mask; /* (o) written by the thread; (a) read by posters */
	/* (a) the same, but while libc blocks everything for a moment */
	uint64_t sig_shown_mask;
	uint64_t sig_saved_mask; /* (o) mask to return to after sigsuspend, ppoll, ... */
	/* (a) libc blocks everything, and what it will go back to was never seen */
	bool is_mask_unknown;
	bool has_saved_mask; /* (o) */
	bool is_paced; /* (a) goes on for a moment before it takes signals of timers; sigpace.c */
	uint64_t sig_awaited;       /* (a) set of a sigtimedwait() in progress */
	struct wf_stack_t altstack; /* (o) */
	void *fp_room; /* (o) of the frame at the top of a small altstack; a save area, or NULL */

	uintptr_t stack_low, stack_high; /* (p) from clone3, 0 if unknown */
	char name[16];                   /* (a) */
	uint32_t policy;                 /* (a) with SCHED_RESET_ON_FORK */
	int32_t priority, nice;          /* (a) */
	uint32_t binds;                  /* (a) LX_BIND_*: why it has a kernel thread of its own */
	bool has_death_signal;           /* (o) it has set a signal by PR_SET_PDEATHSIG */
	bool is_filtered;      /* (o) by a filter of system calls that it has set, or inherited */
	int ioprio;            /* (a) set by another thread before this one was bound */
	bool has_ioprio;       /* (a) */
	uint64_t affinity[16]; /* (a) valid with has_affinity */
	bool has_affinity;     /* (a) */
	/* (o) how late a sleep may end so that several end at once; what 0 sets it back to */
	int64_t timer_slack_ns, default_slack_ns;
};

struct lx_process {
	struct lx_thread *main;       /* (p) the thread whose tid is the pid */
	uint32_t nr_threads;          /* (a) alive */
	struct wf_slab sigqs;         /* struct lx_sigq */
	struct wf_slab futex_vectors; /* struct lx_futex_wait[LX_FUTEX_VECTOR_MAX] */
	uint32_t nr_sigqs;            /* (a) in queues of ours */
	struct wf_spin action_lock;
	struct wf_spin stop_lock; /* held by who stops the process, until it is continued */
	bool is_to_stop;          /* (a) a stop signal came, and no SIGCONT behind it */
	struct sys_sigaction action[WF_NR_SIGNALS + 1]; /* (q) what the program installed */
	/* for the process, and wanted by some thread when they came: any thread may take them */
	struct lx_pending shared WF_ALIGNED(WF_CACHE_LINE);
	uint64_t parked;  /* (a) signals left pending in the kernel: nobody wants them */
	uint64_t to_park; /* (a) of shared: the door shall move them there if nobody wants them */
	int64_t paced_until;   /* (a) when the door tells those that are paced; 0: there is none */
	uint64_t signalfds;    /* (a) what a signalfd was ever made for */
	bool knows_signalfds;  /* (a) also those from before there were threads */
	uint32_t nr_unparking; /* (a) requests to the door to fetch signals that were parked */
	uint32_t nr_unpark_asked; /* (a) of those, the ones that nobody waits for */
	bool is_execing;          /* (a) everything belongs in the kernel */
	uint32_t is_door_raised;  /* (a) to a real-time priority */
	/* (c) of the main thread when it became one of many, and so of every kernel thread for all */
	uint32_t base_policy;
	int32_t base_priority, base_nice;
	uint32_t
		nr_held; /* (a) threads in a real call that is certain to last, each on a kernel thread */
	/* (a) some thread may have the personality in which select() and its kin leave the time-out as it is */
	bool has_sticky_timeouts;
	bool has_userfaults; /* (a) all threads are bound: any of them may wait in a page fault for another */
	bool has_vm_child; /* (a) a process was made that shares our memory and runs beside us */
	bool shares_files; /* (a) another process may have the same table of descriptors */
	bool chooses_without_main; /* (a) though its mask is not known: it may not run soon */
	bool is_filtered;          /* (a) a filter of system calls was set for all threads */
	bool has_clone_child; /* (a) one whose end is not told by SIGCHLD; only __WALL and __WCLONE show it */
	uint32_t ender; /* (a) tid of the kernel thread that ends the process, or 0; ending.c */
	bool is_end_written;    /* (a) and what there was to write has been written */
	bool has_said_overflow; /* (a) */
	bool main_has_ended;    /* (a) or is about to; others may go on */
	void (*on_exit)(void);  /* (c) prints statistics; NULL: nothing to print */
	char why_native[120];   /* its threads are the kernel's, and why; only read from outside */
};

extern struct lx_process lx;

WF_INLINE struct lx_thread *lx_self(void)
{
	return container_of(wf_self(), struct lx_thread, base);
}

WF_INLINE struct lx_thread *lx_of(struct wf_thread *t)
{
	return container_of(t, struct lx_thread, base);
}

WF_INLINE uint64_t lx_bit(int sig)
{
	return 1ull << (sig - 1);
}

WF_INLINE uint32_t lx_tid(const struct lx_thread *t)
{
	return t->base.tid;
}

/* The kernel's number for t: that of its own kernel thread, or 0 when it has none. */
WF_INLINE int lx_bind_tid(const struct lx_thread *t)
{
	const struct wf_kthread *k = wf_load_acquire(&t->base.bound);

	return k ? wf_load_acquire(&k->tid) : 0;
}

/* The tid of the kernel thread that we are. It is not asked: a filter of its thread may let it end the process, and kill for that. */
int lx_kernel_tid(void);
/* The live thread that a tid argument names (0: the caller), or NULL. */
struct lx_thread *lx_by_tid(uint32_t tid);

/* The gate's answers about patched code; registered by attach.c. */
struct lx_gate_ops {
	uintptr_t (*to_tramp)(uintptr_t pc);
	uintptr_t (*from_tramp)(uintptr_t pc);
	bool (*in_pool)(uintptr_t pc);
	bool (*in_libc)(uintptr_t pc); /* of the program itself, not of a namespace beside it */
};
extern struct lx_gate_ops lx_gate;

#ifndef WF_ALONE
/* The same call for real, at once: must be known not to block. */
WF_INLINE long lx_raw(struct wf_frame *f)
{
	return wf_syscall6((long)f->nr, (long)WF_ARG0(f), (long)WF_ARG1(f), (long)WF_ARG2(f),
			   (long)WF_ARG3(f), (long)WF_ARG4(f), (long)WF_ARG5(f));
}
#endif

/* Whether what epoll does not know waits in a ring of io_uring. AUTO: when many do. */
enum lx_ring_mode {
	LX_RING_AUTO,
	LX_RING_ALWAYS,
	LX_RING_NEVER,
};

struct lx_overflow; /* overflow.h */
struct lx_overflow_fiber;

#define LX_WATCHDOG_MIN_NS (100 * WF_MS)
#define LX_WATCHDOG_MAX_S (24 * 3600ull)
struct lx_stall;
struct lx_config {
	struct wf_runtime_config runtime; /* nr_workers 0: as many as processors */
	enum lx_ring_mode ring;           /* (a) */
	void *rseq_area;                  /* main's registered area, NULL: none */
	uint32_t rseq_bytes;
	void *syscall_function; /* libc's syscall() */
	void (*on_exit)(void);
	/* the process dies of this signal: an observer may see it alive until this returns; NULL: nobody wants to */
	void (*on_death)(int sig);
	/* a stack has overflowed; always: also where the program's own handler is about to run */
	void (*on_overflow)(const struct lx_overflow *o);
	bool always_says_overflow;
	/* the program does not get on; see watchdog.h. 0: nobody asks */
	void (*on_stall)(const struct lx_stall *s);
	int64_t watchdog_ns;
	bool watchdog_ends;
	/* (a) the fiber that runs on this thread; false: none does. NULL: there was never one */
	bool (*find_fiber)(struct lx_overflow_fiber *out);
	uintptr_t main_stack_top;
	void (*on_refused)(const char *why); /* the first thread stays native */
	void (*on_short)(const char *of);    /* no further kernel thread can be made */
	void (*on_lacking)(void);            /* some kernel threads keep no events */
	void (*on_outside)(
		const char *why);  /* what the program gives up, our kernel threads keep */
	void (*on_main_end)(void); /* (a) NULL, or main ends, and others go on */
	/* (a) the thread has left its stack, which libc may reuse from now on; by another one, in the middle of a switch */
	void (*on_thread_gone)(void *ended);
	void (*probe_scopes)(void);   /* by main, which has scopes, once it is weft's; or NULL */
	const char *(*prepare)(void); /* before the first thread: patch the rest; NULL or why not */
	/* NULL, or told of execve() and execveat(); it makes calls that a filter of the program's may not know */
	void (*before_exec)(int dir, const char *path, const char *const *env);
};
extern struct lx_config lx_config;

/* The program uses the base register itself, from now on or in a module that was found. */
void lx_share_base(void);
bool lx_shares_base(void);
#define LX_WHY_FILTERED "the program filters its own system calls (seccomp)"
/* The program stays native when it makes a thread. why: for the one line that says so. */
void lx_stay_native(const char *why);
/* The reason that was said there, or NULL. */
const char *lx_why_native(void);
/* The program filters its own system calls from now on: none is made for it that it may not expect. */
void lx_filtered(void);

#endif
