// SPDX-License-Identifier: Apache-2.0
/*
 * The record of a thread's fibers, for dumps; native/fiberbook.c keeps it.
 *
 * Nothing in the process reads it. Invariant: neither a record nor its places are ever given back, so that all can be
 * walked at any moment; while tid is not 0, the record is that thread's. A place whose lowest bit is clear is 0, or the address of a
 * fiber, whose stack and itself are mapped until the place says something else.
 */
#ifndef WF_SCHED_FIBERS_H
#define WF_SCHED_FIBERS_H

#include "base/atomic.h"
#include "base/base.h"

/*
 *   -           -> NEW          weft_fiber_new()
 *   NEW         -> RUNNING      resume, transfer
 *   RUNNING     -> RESUMES      it resumes another, and waits for that one
 *   RESUMES     -> RUNNING      that one yields, or returns
 *   RUNNING     -> YIELDED      yield: to the one that has resumed it
 *   YIELDED     -> RUNNING      resume
 *   RUNNING     -> TRANSFERRED  it transfers to another
 *   TRANSFERRED -> RUNNING      transfer; or its thread has nothing else to go on with, see next_after() of native/fiber.c
 *   RUNNING     -> DONE         its first function returns
 *
 * All by the thread that made it, on which exactly one is RUNNING. A thread's own stack is the fiber that is there first.
 */
enum wf_fiber_state {
	WF_FIBER_NEW,
	WF_FIBER_RUNNING,
	WF_FIBER_RESUMES,
	WF_FIBER_YIELDED,
	WF_FIBER_TRANSFERRED,
	WF_FIBER_DONE,
};

/* Room for the addresses of fibers: nr of them lie right behind it. */
struct wf_fibers_page {
	struct wf_fibers_page *next; /* (p) an older one */
	uint64_t nr;                 /* (p) */
};

struct wf_fibers {
	struct wf_fibers *next;      /* (p) */
	struct wf_fibers_page *page; /* (o) the newest */
	const void *own;             /* (p) the fiber that the thread's own stack is */
	const void *current;         /* (p) where it is said which one the thread is in */
	uint64_t id;                 /* (a) of the fibers that are this thread's */
	int32_t tid;                 /* (a) of its thread; 0: nobody's */
};

/* The first part of struct weft_fiber, which lies right above its own stack: what a dump reads of it. */
struct wf_fiber_shown {
	void *sp; /* where it was left; a frame of wf_arch_fiber_switch() */
	const void *parent, *home;
	uint64_t home_id;
	const void *resumer, *resuming;
	uint64_t cxx[2];
	enum wf_fiber_state state;
	uint32_t class;
	char *low; /* of its stack */
	void *(*fn)(void *first);
	const char *name;
};

extern struct wf_fibers *wf_fibers_all; /* (a) by next */

#endif
