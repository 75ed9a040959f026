// SPDX-License-Identifier: Apache-2.0
/*
 * A fiber, and what a thread has that uses them; see fiber.c. sched/fibers.h has the states.
 */
#ifndef WF_NATIVE_FIBER_H
#define WF_NATIVE_FIBER_H

#include "native/fiberbook.h"
#include "native/scope.h"
#include "native/stackpool.h"
#include "native/watched.h"
#include "weft/fiber.h"

#include <pthread.h>
#include <stddef.h>

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
	uintptr_t *place; /* in home->book, or NULL */
};

_Static_assert(offsetof(struct weft_fiber, sp) == WF_FIBER_SP, "fiber.S relies on it");
_Static_assert(offsetof(struct weft_fiber, parent) == WF_FIBER_PARENT, "fiber.S relies on it");
#define WF_FIBER_SHOWS(member)                                                                     \
	_Static_assert(offsetof(struct weft_fiber, member) ==                                      \
				       offsetof(struct wf_fiber_shown, member) &&                  \
			       sizeof(((struct weft_fiber *)0)->member) ==                         \
				       sizeof(((struct wf_fiber_shown *)0)->member),               \
		       "dumps rely on it")
WF_FIBER_SHOWS(sp);
WF_FIBER_SHOWS(parent);
WF_FIBER_SHOWS(home_id);
WF_FIBER_SHOWS(resumer);
WF_FIBER_SHOWS(resuming);
WF_FIBER_SHOWS(state);
WF_FIBER_SHOWS(low);
WF_FIBER_SHOWS(name);

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
	struct wf_fiberbook *book;  /* (c) its fibers, to a dump */
};

/* In a fork child: other threads' are gone. */
WF_FACE_CODE void wf_fiber_forget_others(void);

#endif
