// SPDX-License-Identifier: Apache-2.0
/*
 * The object behind a handle of weft/thread.h: a pthread of ours, which may run one function after another.
 *
 * The object is reused, and never given back to the system; so that an old handle is known for one, a handle is the object's
 * address with the lowest bits of a count of its uses.
 *
 *   FREE    -> RUNNING  the spawner  store, before the thread sees it
 *   RUNNING -> DONE     the thread   under the lock: its function has left nothing, it rests and can have another one
 *   RUNNING -> ENDED    the thread   under the lock: it ends, for good
 *   DONE    -> FREE     the joiner   store, before the shell is where spawners look for one; of one that nobody joins, itself
 *   ENDED   -> FREE     the joiner   when libc has joined it; of one that nobody joins, itself, in its last moments
 */
#ifndef WF_NATIVE_THREAD_H
#define WF_NATIVE_THREAD_H

#include "linux/shell.h"
#include "native/face.h"
#include "weft/scope.h"
#include "weft/thread.h"

enum wf_thread_use {
	WF_USE_FREE,
	WF_USE_RUNNING,
	WF_USE_DONE,
	WF_USE_ENDED,
};

#define WF_USES 64 /* that a handle tells apart */

/* The orders for a resting shell. */
enum wf_thread_order {
	WF_ORDER_NONE,
	WF_ORDER_RUN,
	WF_ORDER_END,
};

/* (c) of one use; (f) of the pthread; (p) before DONE or ENDED; (q) under the lock; (a) atomic, anyone */
struct weft_thread {
	struct weft_thread *next; /* among those that rest; the first word: the slab's, too */
	uint32_t state; /* (a) enum wf_thread_use; what a kernel thread that joins sleeps on */
	uint32_t uses;  /* (a) */
	weft_fn *fn;    /* (c) */
	void *arg;      /* (c) */
	int result;     /* (p) */
	/* (a) around all of its function, on its stack; NULL: it has not begun, or is no more */
	weft_scope *root;
	uint32_t is_cancelled;  /* (a) */
	uint32_t nr_cancelling; /* (a) those that may have read root, and use it */
	/* (a) somebody is at it: set under the lock while the state is RUNNING, and later by an exchange */
	uint32_t is_joined;
	struct wf_spin lock;
	bool is_detached; /* (c) */
	bool is_waiting; /* (p) of a use: it counts among those that rest until somebody joins; see shell.c */
	bool has_sleeper; /* (q) a kernel thread that is not weft's sleeps on the state */
	struct wf_thread
		*joins; /* (q), read without it as a hint: parked until the state changes */
	struct wf_thread
		*core;   /* (p) of a use, (f): what it is to the runtime; NULL: a kernel thread */
	uint32_t order;  /* of whoever has found it at rest, then its own: enum wf_thread_order */
	int shell_class; /* (f) or -1: its function is its last one */
	uint32_t life; /* (f) of the process, in which it was made: a fork child has another one */
	/* (c) NULL, or where it says that it has begun, and with what error: 0, then 1 + error; the spawner sleeps on it */
	uint32_t *started;
	int nice;             /* (c) 0: as it is */
	unsigned flags;       /* (c) */
	pthread_t thread;     /* (f) but both it and its spawner store it, when they know */
	uint32_t fp_modes[2]; /* (c) the spawner's */
	struct lx_shell_heritage heritage; /* (c) of one that has rested */
	char name[16];                     /* (c) empty: the spawner's */
	pthread_t joiner;                  /* with is_joined, who has set it: for reports */
};

struct wf_scope;
/*
 * In native mode, where a canceller only leaves word: a word that becomes 1, and is woken, when the calling thread is
 * cancelled. NULL: its innermost scope, top, is another one than that around its function.
 */
WF_FACE_CODE uint32_t *wf_thread_bell(const struct wf_scope *top);

#endif
