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

#include "arch/x86_64/frame.h"
#include "arch/x86_64/sigframe.h"
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
/* What an instruction raises: they reach us first. */
#define LX_FAULTS                                                                                  \
	(lx_bit(SIGSEGV) | lx_bit(SIGBUS) | lx_bit(SIGFPE) | lx_bit(SIGILL) | lx_bit(SIGTRAP) |    \
	 lx_bit(SIGSYS))
#define LX_MAX_NR 512
#define LX_PERSONALITY_QUERY 0xffffffffu

/* One queued signal. */
struct lx_sigq {
	struct wf_list link;
	struct wf_siginfo info;
};

/* What is pending for a thread, or for the process. */
struct lx_pending {
	struct wf_spin lock;
	uint32_t owner; /* (q) tid of the thread; 0: the process, or a thread that has ended */
	uint64_t set;   /* (a) what can be taken; written under the lock */
	struct wf_list queue; /* (q) struct lx_sigq, oldest first */
};

/* What a thread waits for in the futex table; see futex.c. */
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
	uint32_t *child_tid;      /* (o) cleared and woken when the thread has left its stack */
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

/* What the kernel calls t: its own kernel thread, or 0 when it has none. */
WF_INLINE int lx_bind_tid(const struct lx_thread *t)
{
	const struct wf_kthread *k = wf_load_acquire(&t->base.bound);

	return k ? wf_load_acquire(&k->tid) : 0;
}

/* The live thread that a tid argument names (0: the caller), or NULL. */
struct lx_thread *lx_by_tid(uint32_t tid);

/* Alternate stacks; sigcalls.c. A handler returns to sp: the stack becomes what its frame says, if the kernel would allow it. */
void lx_altstack_restore(struct lx_thread *t, const struct wf_stack_t *s, uintptr_t sp);
/* sp lies on s, and s is not one that a handler has disarmed. */
bool lx_is_on_alternate(const struct wf_stack_t *s, uintptr_t sp);
/* Under lx.action_lock: the handler of sig is gone, SA_RESETHAND. */
void lx_action_reset(int sig);
/* The kernel keeps the program's own disposition, except where a signal must reach us. */
void lx_action_tell_kernel(int sig);
/* Those, too: nothing reaches us any more. */
void lx_action_give_back(void);

/* What the gate tells us about patched code; registered by attach.c. */
struct lx_gate_ops {
	uintptr_t (*to_tramp)(uintptr_t rip);
	uintptr_t (*from_tramp)(uintptr_t rip);
	bool (*in_pool)(uintptr_t rip);
	bool (*in_libc)(uintptr_t rip); /* of the program itself, not of a namespace beside it */
};
extern struct lx_gate_ops lx_gate;

/* Dispatch. */
struct lx_call {
	long (*handler)(struct wf_frame *f);
};
extern const struct lx_call lx_table[LX_MAX_NR];
bool lx_wants(int nr);
/* What must be seen while there is no thread yet. */
bool lx_wants_at_start(int nr);

/* The same call for real, at once: must be known not to block. */
WF_INLINE long lx_raw(struct wf_frame *f)
{
	return wf_syscall6((long)f->nr, (long)WF_ARG0(f), (long)WF_ARG1(f), (long)WF_ARG2(f),
			   (long)WF_ARG3(f), (long)WF_ARG4(f), (long)WF_ARG5(f));
}

/*
 * A real call that may block. certain: the worker is handed on first; else the monitor takes it when the call
 * lasts. Interrupted by a signal for this thread: -ERESTARTSYS if the kernel would restart it, see restart.
 */
enum lx_restart {
	LX_RESTART_SYS,
	LX_RESTART_NEVER
};
WF_PARKS long lx_blocking_call(long nr, const long args[6], bool certain, enum lx_restart restart);
WF_PARKS long lx_blocking(struct wf_frame *f, bool certain);
/*
 * The rest of a call of which a part is done, and which the kernel ends in part for no signal: it is made, and handlers
 * wait, also those of signals that came before.
 */
WF_PARKS long lx_blocking_rest(long nr, const long args[6]);
/* One that waits for a disk, and so is back soon. */
WF_PARKS long lx_disk(struct wf_frame *f);
/*
 * The same for a call that loses nothing when it is interrupted: when it lasts, the monitor ends it instead of
 * taking the worker. Then, if it had done nothing yet, it returns -EINTR, and the caller waits in a way that
 * holds no kernel thread; a signal for the program is -ERESTARTSYS. brief: it is certain to last, so the
 * worker is handed on first, and the call ends within a millisecond.
 */
WF_PARKS long lx_breakable_call(long nr, const long args[6]);
/*
 * epoll_pwait2() right here while nobody else needs the worker, until *until at the latest, which may come nearer: see
 * sched/direct.h. False: not made. -EINTR or -ERESTARTNOINTR in *out: it was interrupted, for whatever reason, and had
 * done nothing.
 */
bool lx_direct_wait(int set, void *events, long nr_events, int64_t *until, long *out);
/* The first argument is this descriptor. */
WF_PARKS long lx_breakable_on(struct wf_frame *f, int fd);
WF_PARKS long lx_brief(struct wf_frame *f);

/* Program memory: 0 or -EFAULT. */
long wf_arch_copy(void *dst, const void *src, size_t n);
long wf_arch_load32(const uint32_t *p, uint32_t *out);
long wf_arch_cas32(uint32_t *p, uint32_t *expected, uint32_t desired);

/* Queues of pending signals; sigqueue.c. */
void lx_pending_init(struct lx_pending *p, uint32_t owner);
/* 0. New, not from the kernel: or -EAGAIN, by the limit of queued signals. */
/* -ESRCH: it is not owner's, or not any more. */
long lx_pending_add(struct lx_pending *p, uint32_t owner, int sig, const struct wf_siginfo *info,
		    bool is_new);
void lx_pending_push_front(struct lx_pending *p, int sig, const struct wf_siginfo *info);
/* The next of set, or 0. */
int lx_pending_take(struct lx_pending *p, uint64_t set, struct wf_siginfo *out);
void lx_pending_drop(struct lx_pending *p, uint64_t set);
/* The thread ends: nothing is there, and nothing is added any more. */
void lx_pending_close(struct lx_pending *p);
/* Signals of one timer. */
void lx_pending_drop_timer(struct lx_pending *p, int timer_id);
/* What is there of set is all from timers. */
bool lx_pending_is_timers(struct lx_pending *p, uint64_t set);

/* Of a timer that was set: a POSIX timer, or one of setitimer() or alarm(). */
bool lx_signal_is_timers(const struct wf_siginfo *info);
/*
 * By t, where a timer's handler returns: true, it goes on, since nothing waits but more of the kind, which it takes in a
 * moment. sigpace.c. By the door: tells those whose moment is over; or when that is, WF_NEVER for nobody.
 */
bool lx_signal_pace(struct lx_thread *t);
int64_t lx_signal_paced_until(int64_t now);

/* Signals; signals.c, sigdeliver.c and sigfault.c. */
bool lx_signal_is_wanted(struct lx_thread *t);
/*
 * The same for the caller, in the loop of a wait that ended without its event: a bit of the attention word
 * that nothing stands behind any more would end every further wait at once, and goes.
 */
bool lx_signal_is_waiting(struct lx_thread *self);
/* Whom a signal of the process was told may not run soon: who is in a call may have it. */
void lx_signal_stranded(void);
/* Make t look at its attention word soon, whatever it is doing. */
void lx_signal_notify(struct lx_thread *t);
/* To one thread. 0, -EAGAIN, or -ESRCH: it has ended. */
long lx_signal_post(uint32_t tid, int sig, const struct wf_siginfo *info);
/* To the process, by the door. first: who shall have it if it wants it; NULL: as Linux chooses. */
void lx_signal_process(int sig, const struct wf_siginfo *info, struct lx_thread *first);
/* To the process, by one of its threads. 0 or -EAGAIN. */
long lx_signal_send_self(int sig, const struct wf_siginfo *info);
/* Make t look at its attention word soon, wherever it runs; does not end a wait. */
void lx_signal_interrupt(struct lx_thread *t);
void lx_signal_set_mask(struct lx_thread *t, uint64_t mask);
/* The caller takes no signal of set any more: whoever wants those of the process must hear of them. */
void lx_signal_retarget(uint64_t set);
/* The next signal of that number for the process may be t's. */
bool lx_signal_wants(struct lx_thread *t, int sig);
/* As Linux chooses: the main thread if it wants sig, else the next that does, else NULL. */
struct lx_thread *lx_signal_choose(int sig, struct lx_thread *second);
/* The next pending signal of set, the thread's own before the process's, or 0. */
int lx_signal_take(struct lx_thread *t, uint64_t set, struct wf_siginfo *out);
void lx_signal_deliver_at_return(struct lx_thread *t, struct wf_ucontext *uc);
/* What t may take now, at uc. here: the frame goes below, 0: anywhere; see sigdeliver.c. */
void lx_signal_deliver_all(struct lx_thread *t, struct wf_ucontext *uc, uintptr_t here);
/* Hooks of the scheduler; see sched/driver.h. */
bool lx_signal_interrupted(struct wf_thread *base, void *context);
void lx_signal_resuming(struct wf_thread *base, void *context);
void lx_signal_in_runtime(void *context);
void lx_signal_on_fault(int sig, void *siginfo, void *context);
/* By the door: info as it was before lx_signal_on_fault() found that it was no fault and passed it here. */
void lx_signal_unforward(struct wf_siginfo *info);
bool lx_signal_is_ignored(int sig);
bool lx_signal_default_ignores(int sig);
/* Of the kernel thread that we are. It is not asked: a filter of its thread may let it end the process, and kill for that. */
int lx_kernel_tid(void);
/*
 * The caller ends the process. True: it is the first, and writes what there is to write. False: it was already, and has
 * crashed in that, or it is the door; it only dies. Anybody else sleeps until the process is gone.
 */
bool lx_ending_begin(void);
/* By the first: all is written. */
void lx_ending_over(void);
/* All of it, for what on_exit writes. sig: of which the process dies, 0: it exits. */
void lx_ending_record(int sig);
/* By the first: tell who watches, if the process dies of a signal that is a crash. */
void lx_ending_tell(int sig);
/* Stops the process, or ends it and does not return. */
void lx_signal_default_action(int sig, struct wf_siginfo *info);
/* A stop signal ends what is pending of SIGCONT, and the other way round. */
void lx_signal_prepare(int sig);
/* Drop what is pending of set, everywhere. */
void lx_signal_flush(uint64_t set);
void lx_signal_drop_timer(int timer_id);
/*
 * A write that ended with ret raised a signal on this kernel thread, which blocks it: a closed pipe, or the limit
 * of a file's size. It would stay pending here, and strike at whoever execs from here.
 */
void lx_signal_take_raised(long ret);
void lx_signal_exit(struct wf_frame *f);
void lx_signal_start(struct lx_thread *main);
void lx_signal_thread_init(struct lx_thread *t, const struct lx_thread *parent);
void lx_signal_thread_exit(struct lx_thread *t);
void lx_signal_restore_kernel(struct lx_thread *t);

/* What lies in the kernel; sigpark.c. By the door: put sig there; do what others asked for. */
void lx_signal_park(int sig);
/* One that the door has just taken, and nobody wants. */
void lx_signal_park_taken(int sig);
void lx_signal_park_asked(void);
/* Signals of set that lie in the kernel because nobody wanted them: let the door fetch them now. */
void lx_signal_unpark(uint64_t set);
/* The same; returns when what was pending of set is to be had. */
void lx_signal_unpark_and_wait(uint64_t set);
/* The kernel is about to be asked for sig: it keeps it from the beginning if nobody wants it. */
void lx_signal_expect(int sig);
/* sigfd.c: some signalfd was made for sig, and shows what the kernel has. */
bool lx_signalfd_shows(int sig);
/* Everything that is pending for the process goes into the kernel, for exec; and back. */
void lx_signal_leave(void);
void lx_signal_stay(void);

WF_NORETURN void lx_door_loop(void *kthread);
/* By the door: take and pass on what is pending now. First what was pending for main before there was a door. */
void lx_door_drain(void);
/* Return when the door has taken and dealt with what was pending, by the set of parked signals of now. */
void lx_door_pass(void);

/* Timeouts: a user pointer to a relative or absolute timespec -> deadline on CLOCK_MONOTONIC. */
long lx_deadline_relative(const void *user_timespec, int64_t *out_deadline);
long lx_deadline_absolute(const void *user_timespec, int clock, int64_t *out_deadline);
int64_t lx_deadline_in(int64_t ns);

/* futex_pi.c: t is dead, and nobody finds it by its tid any more. */
void lx_futex_thread_ended(struct lx_thread *t);
/* process.c: a clone that makes a process. args: its clone3 arguments, NULL for clone. */
struct clone_args;
WF_PARKS long lx_clone_process(struct wf_frame *f, uint64_t flags, uintptr_t sp,
			       const struct clone_args *args);

/* thread.c */
void lx_thread_exited(struct wf_thread *t);
/* timer.c: the tid that a kernel timer's signal is for, or 0: the process. */
uint32_t lx_timer_target(int timer_id);
/* A timer's signal was taken from a queue: timer_getoverrun() tells what it said. */
void lx_timer_taken(const struct wf_siginfo *info);
/* By the door, which empties a queue that a fast timer fills: a second signal of it came after the beginning. */
void lx_timer_drain_begin(void);
bool lx_timer_is_back(const struct wf_siginfo *info);
void lx_stacks_forget(void);
void lx_queue_forget(void);

/* policy.c: policy and priorities of a new thread. */
void lx_sched_inherit(struct lx_thread *t, const struct lx_thread *parent);

/* start.c */
/* Whether what epoll does not know waits in a ring of io_uring. AUTO: when many do. */
enum lx_ring_mode {
	LX_RING_AUTO,
	LX_RING_ALWAYS,
	LX_RING_NEVER,
};

struct lx_overflow; /* overflow.h */

struct lx_config {
	uint32_t nr_workers; /* 0: as many as processors */
	bool keeps_worker;   /* see struct wf_runtime */
	uint64_t seed;
	bool is_shuffled;       /* random schedules, from the seed */
	uint32_t slice_us;      /* 0: the usual one */
	enum lx_ring_mode ring; /* (a) */
	size_t min_sigstack;
	void *rseq_area; /* main's registered area, NULL: none */
	uint32_t rseq_bytes;
	void *syscall_function; /* libc's syscall() */
	void (*on_exit)(void);
	/* the process dies of this signal: whoever wants to see it alive may do so until this returns; NULL: nobody */
	void (*on_death)(int sig);
	/* a stack has overflowed; always: also where the program's own handler is about to run */
	void (*on_overflow)(const struct lx_overflow *o);
	bool always_says_overflow;
	uintptr_t main_stack_top;
	void (*on_refused)(const char *why); /* the first thread stays native */
	void (*on_short)(const char *of);    /* no further kernel thread can be made */
	void (*on_outside)(
		const char *why);     /* what the program gives up, our kernel threads keep */
	const char *(*prepare)(void); /* before the first thread: patch the rest; NULL or why not */
	/* NULL, or told of execve() and execveat(); it makes calls that a filter of the program's may not know */
	void (*before_exec)(int dir, const char *path, const char *const *env);
};
extern struct lx_config lx_config;
/* Why a program whose rings the main kernel thread owns stays native; NULL: it need not. Before the first thread. */
const char *lx_uring_of_main(void);
/* base: what the program has in the base register. 1; 0: the program stays native; -errno: no kernel thread could be made, and the next thread may try again. */
long lx_start(uintptr_t base);
/* The program uses the base register itself, from now on or in a module that was found. */
void lx_share_base(void);
bool lx_shares_base(void);
#define LX_WHY_FILTERED "the program filters its own system calls (seccomp)"
/* The program stays native when it makes a thread. why: for the one line that says so. */
void lx_stay_native(const char *why);
/* What was said there, or NULL. */
const char *lx_why_native(void);
/* The program filters its own system calls from now on: none is made for it that it may not expect. */
void lx_filtered(void);
/* A program is about to be executed, by f. */
void lx_exec_notice(struct wf_frame *f);
/* In the child of a fork. shares_files: it has the table of descriptors in common with its parent. */
void lx_forget(bool shares_files);

#endif
