// SPDX-License-Identifier: Apache-2.0
/*
 * Shells: the pthreads of weft_thread_spawn(), each of which runs one function after another. To make a pthread costs ten times as
 * much. The runtime's code; what libc keeps of a thread is seen to in fresh.c.
 *
 * A spawn queues its thread on the shelf of its worker, and calls a shell that rests there; where one is on its way already, it does
 * no more. A shell that arrives takes the next of the queue, and first of all calls another one if there is more: threads that wait
 * for one another all begin. A shell whose function has returned takes the next, too, and rests where there is none: a crowd of
 * threads that wait for nothing is run by a shell or two.
 *
 * A thread that is queued behind a shell on its way is a promise. None is given where others are stuck, nor behind a shell that a
 * spawner is about to make: that one may have to do without, and wait for the thread that waits for what was promised. So it is an
 * arriving shell that finds no room for another one. It runs its own thread, which is promised nothing of that class, and takes what is
 * stuck: threads that wait only for those that they have spawned all end.
 *
 * Invariants: where a queue is not empty, one shell is called to it and has not arrived (is_called), or it is that of all workers, and
 * stuck: none rested and none could be made. The maker tries again until one is found (maker.h); where there is no maker yet, the
 * spawner is about to make it, or to withdraw its thread.
 * A shell is PARKING before anybody can find it, and only one finds it, which gives it one order; see order.h.
 */
#ifndef WF_NATIVE_SHELL_H
#define WF_NATIVE_SHELL_H

#include "native/order.h"
#include "native/thread.h"

/* By stack: the default, 64 KiB, 256 KiB; and each for threads that do not care what the one before has left. */
#define WF_SHELL_STACKS 3
#define WF_SHELL_CLASSES (2 * WF_SHELL_STACKS)

struct wf_shelf;

/* (f) of the pthread; (o) of the one that makes or calls it, then its own; (q) under the lock of a shelf */
struct wf_shell {
	struct wf_shell *next;     /* (q) among those that rest; the first word: the slab's, too */
	struct wf_shell **link;    /* (q) what points to it there; NULL: it does not rest */
	struct wf_order order;     /* that ends its rest */
	struct wf_thread *core;    /* (f) what it is to the runtime; NULL: a kernel thread */
	struct weft_thread *given; /* (o) what it runs first; NULL: the next of the shelf */
	struct wf_shelf *
		shelf; /* (o) that it is called to, or took a thread from; NULL: none yet, it is made for given */
	bool is_to_end;   /* (o) */
	int shell_class;  /* (f) or -1: its function is its last one */
	uint64_t left_at; /* its switches when its last function had returned */
	uint32_t life; /* (f) of the process, in which it was made: a fork child has another one */
};

/* t is to run, with what it has from self. */
enum wf_shell_spawn {
	WF_SPAWN_BEGINS, /* a shell comes */
	WF_SPAWN_QUEUED, /* behind one that comes, or is made: the caller withdraws it, unless there is a maker */
	WF_SPAWN_MAKE, /* t is queued, and the caller makes a shell that is called to the shelf */
	WF_SPAWN_REFUSED, /* others are stuck */
	/* t is for a pthread that self makes: it hands down more than a shell can have, or is behind a shell that may not come */
	WF_SPAWN_ALONE,
};
enum wf_shell_spawn wf_shell_spawn(struct wf_thread *self, int shell_class, struct weft_thread *t,
				   struct wf_shelf **out_shelf);
/* That use of t was queued at the shelf. True: it will not run. False: a shell has it, or has had it. */
bool wf_shell_withdraw(struct wf_thread *self, int shell_class, struct wf_shelf *shelf,
		       struct weft_thread *t, uint32_t uses);

/* The shell was made, which a spawner has called to the shelf. */
void wf_shell_made(struct wf_thread *self, struct wf_shelf *shelf);
/*
 * No pthread could be made that was called to the shelf. A shell that rests is called there after all. Where none does, t, which the
 * caller has queued there, or NULL, is withdrawn, unless a shell has it already, and the rest is the maker's. True: t will not run.
 */
bool wf_shell_not_made(struct wf_thread *self, int shell_class, struct wf_shelf *shelf,
		       struct weft_thread *t);

/*
 * There is no room for a pthread: those of other classes that rest end, for theirs. False: none did. Nobody knows when they are gone, and
 * whether libc has kept what they had.
 */
bool wf_shell_end_others(struct wf_thread *self, int shell_class);

bool wf_shell_is_any_ending(void);
/* One that was to end is about to be gone. */
void wf_shell_ended(void);

/* The maker's. True: something is stuck and no shell rests, and it makes one that is called to the shelf. */
bool wf_shell_call_to_stuck(struct wf_thread *self, int shell_class, struct wf_shelf **out_shelf);
bool wf_shell_is_stuck(void);
/* Something may become stuck. */
bool wf_shell_is_any_queued(struct wf_thread *self);

/*
 * Of a shell that has been made: the first thread that it runs; NULL: somebody else has it. out_wants: the caller makes another
 * shell, called to this one's shelf.
 */
struct weft_thread *wf_shell_arrive(struct wf_thread *self, struct wf_shell *s, bool *out_wants);

enum wf_shell_next {
	WF_NEXT_RUNS, /* *t */
	WF_NEXT_NONE, /* the shell is to end */
	WF_NEXT_REFUSED, /* *t has left something that another one would find; nobody has heard of its end */
	WF_NEXT_AFTER_SIGNAL, /* the caller takes a signal outside, and comes back */
};
/*
 * Of a shell whose thread *t has returned from its function; NULL: it has none. The joiner hears of it, and *t becomes the next
 * thread; NULL: there is none. A joiner that hears of it finds the shell at rest, unless it runs another one.
 */
WF_PARKS enum wf_shell_next wf_shell_next(struct wf_thread *self, struct wf_shell *s,
					  struct weft_thread **t, bool *out_wants);

/*
 * The shell is t from now on, and a canceller finds root. One that has come before has stored is_cancelled, which the caller looks at
 * then.
 */
void wf_shell_begin(struct wf_thread *self, const struct wf_shell *s, struct weft_thread *t,
		    weft_scope *root);

/* In a fork child: there are none. */
void wf_shell_forget(void);

#endif
