// SPDX-License-Identifier: Apache-2.0
/*
 * A fiber, and what a thread has that uses them; see fiber.c.
 */
#ifndef WF_NATIVE_FIBER_H
#define WF_NATIVE_FIBER_H

#include "native/scope.h"
#include "native/stackpool.h"
#include "native/watched.h"
#include "weft/fiber.h"

#include <pthread.h>
#include <stddef.h>

/*
 *   -           -> NEW          weft_fiber_new()
 *   NEW         -> RUNNING      resume, transfer
 *   RUNNING     -> RESUMES      it resumes another, and waits for that one
 *   RESUMES     -> RUNNING      that one yields, or returns
 *   RUNNING     -> YIELDED      yield: to the one that has resumed it
 *   YIELDED     -> RUNNING      resume
 *   RUNNING     -> TRANSFERRED  it transfers to another
 *   TRANSFERRED -> RUNNING      transfer; or its thread has nothing else to go on with, see next_after()
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

/* The C++ runtime's state of a thread, by the ABI that all compilers follow: exceptions that are being handled. */
struct wf_fiber_cxx {
	void *caught;
	unsigned uncaught;
};

struct wf_fiber_home;

/* At the top of its own stack. Of its thread alone, but for weft_fiber_free() once it is suspended. */
struct weft_fiber {
	void *sp; /* where it was left */
	struct weft_fiber *
		parent; /* its caller, for whoever unwinds: the resumer, or the thread's own stack */
	struct wf_fiber_home *home;
	uint64_t home_id;            /* home is another thread's by now if that one's id differs */
	struct weft_fiber *resumer;  /* NULL: nobody, or it has yielded */
	struct weft_fiber *resuming; /* in RESUMES: whom */
	struct wf_fiber_cxx cxx;     /* while it does not run */
	enum wf_fiber_state state;
	uint32_t class; /* of its stack */
	char *low;      /* of its stack */
	void *(*fn)(void *first);
	const char *name;
	struct wf_watched watched;
	struct wf_scope_chain scopes;
};

_Static_assert(offsetof(struct weft_fiber, sp) == WF_FIBER_SP, "fiber.S relies on it");
_Static_assert(offsetof(struct weft_fiber, parent) == WF_FIBER_PARENT, "fiber.S relies on it");

/* Never given back, so that a fiber whose thread has ended names memory that can be read; used again by threads to come. */
struct wf_fiber_home {
	struct weft_fiber *current;
	struct wf_fiber_cxx *cxx; /* the C++ runtime's, of this thread; NULL: there is none */
	uint64_t id;              /* (a) no two threads have the same; 0: nobody's */
	struct weft_fiber own;    /* the thread's own stack */
	struct wf_scopes *scopes; /* the thread's */
	bool is_watched;
	int tid;
	pthread_t thread;
	struct wf_stackpool pool;
	struct wf_fiber_home *next; /* of those that nobody uses */
};

#endif
