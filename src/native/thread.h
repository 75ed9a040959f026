// SPDX-License-Identifier: Apache-2.0
/*
 * The object behind a handle of weft/thread.h: one function that is to run beside others, until somebody has joined it. The
 * pthread that runs it is a shell; see shell.h.
 *
 * The object is reused, and never given back to the system; so that an old handle is known for one, a handle is the object's
 * address with the lowest bits of a count of its uses.
 *
 *   FREE    -> RUNNING  the spawner  store, before a shell sees it; it may not have begun yet
 *   RUNNING -> DONE     the shell    under the lock: the function has left nothing, and the shell is done with the object
 *   RUNNING -> DONE     a successor  under the lock: the pthread has ended with it
 *   RUNNING -> ENDED    the pthread  store, and a wake-up: natively
 *   DONE    -> FREE     the joiner   of one that nobody joins, the shell
 *   ENDED   -> FREE     the joiner   when libc has joined the pthread
 *   RUNNING -> FREE     the shell    of one that nobody joins, in its last moments
 */
#ifndef WF_NATIVE_THREAD_H
#define WF_NATIVE_THREAD_H

#include "base/spin.h"
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

/* (c) of one use; (p) before DONE or ENDED; (q) under the lock; (a) atomic, anyone */
struct weft_thread {
	struct weft_thread *
		next; /* of those that have not begun, or are free; the first word: the slab's, too */
	uint32_t state;   /* (a) enum wf_thread_use; what a kernel thread that joins sleeps on */
	uint32_t uses;    /* (a) */
	weft_fn *fn;      /* (c) */
	void *arg;        /* (c) */
	int result;       /* (p) */
	bool is_detached; /* (c) */
	bool has_sleeper; /* (q) a kernel thread that is not weft's sleeps on the state */
	uint32_t
		is_cancelled; /* (a) what it sleeps on, if it is a kernel thread that is not weft's */
	uint32_t has_bell;    /* (a) it is one */
	/* (a) somebody is at it: set under the lock while the state is RUNNING, and later by an exchange */
	uint32_t is_joined;
	struct wf_spin lock;
	uint32_t
		nr_cancelling; /* (a) those that have read root, and use it; one more under the lock alone */
	/* (a) around all of its function, on its stack; NULL, under the lock: it is no more; or it has not begun */
	weft_scope *root;
	struct wf_thread *joins; /* (q) parked until the state changes */
	pthread_t thread;        /* (a) 0: it has not begun */
	pthread_t joiner;        /* with is_joined, the one that has set it: for reports */
	/* (c) NULL, or where it says that it has begun, and with what error: 0, then 1 + error; the spawner sleeps on it */
	uint32_t *started;
	int nice;                          /* (c) 0: as it is */
	unsigned flags;                    /* (c) */
	uint32_t fp_modes[2];              /* (c) the spawner's */
	struct lx_shell_heritage heritage; /* (c) of one that a shell runs */
	char name[16];                     /* (c) empty: the spawner's */
};

struct wf_scope;
/*
 * In native mode, where a canceller only leaves word: a word that becomes 1, and is woken, when the calling thread is
 * cancelled. NULL: its innermost scope, top, is another one than that around its function.
 */
WF_FACE_CODE uint32_t *wf_thread_bell(const struct wf_scope *top);
/* In a fork child: there are none but the caller. */
WF_FACE_CODE void wf_thread_forget_others(void);

#endif
