// SPDX-License-Identifier: Apache-2.0
/*
 * What a handle of weft/thread.h stands for.
 *
 * The object is reused, and never given back to the system; so that an old handle is known for one, a handle is the object's
 * address with the lowest bits of a count of its uses.
 *
 *   RUNNING -> ENDED   the thread   store, then a wake-up of its joiner; the object is the joiner's from here on
 *   ENDED   -> FREE    the joiner   when libc has joined it; of one that nobody joins, the thread itself
 */
#ifndef WF_NATIVE_THREAD_H
#define WF_NATIVE_THREAD_H

#include "native/face.h"
#include "weft/thread.h"

enum wf_thread_use {
	WF_USE_FREE,
	WF_USE_RUNNING,
	WF_USE_ENDED,
};

#define WF_USES 64 /* that a handle tells apart */

/* (c) of one use; (p) before ENDED; (a) atomic, anyone */
struct weft_thread {
	void *next_free;    /* of the slab's */
	uint32_t state;     /* (a) enum wf_thread_use; what a joiner sleeps on */
	uint32_t uses;      /* (a) */
	weft_fn *fn;        /* (c) */
	void *arg;          /* (c) */
	int result;         /* (p) */
	uint32_t is_joined; /* (a) somebody is at it; taken by an exchange */
	bool is_detached;   /* (c) */
	/* (c) NULL, or where it says that it has begun, and with what error: 0, then 1 + error; the spawner sleeps on it */
	uint32_t *started;
	int nice;         /* (c) 0: as it is */
	unsigned flags;   /* (c) */
	pthread_t thread; /* (c) but both it and its spawner store it, when they know */
	char name[16];    /* (c) empty: the spawner's */
	char joiner[16];  /* with is_joined, of whoever has set it: for reports */
};

#endif
