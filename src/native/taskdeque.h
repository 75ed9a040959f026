// SPDX-License-Identifier: Apache-2.0
/*
 * The deques of tasks: one for each thread that has ever forked, and how thieves find them.
 *
 * Called by: task.c and crew.c, in the program's code.
 *
 * Invariant: a deque is never given back, as a thief may look at one whose thread has ended; the next thread that forks gets it.
 */
#ifndef WF_NATIVE_TASKDEQUE_H
#define WF_NATIVE_TASKDEQUE_H

#include "native/deque.h"
#include "native/face.h"
#include "sched/scope.h"
#include "sched/tasks.h"
#include "weft/task.h"

struct wf_taskdeque {
	struct wf_deque deque;
	struct wf_taskdeque *next; /* (p) */
	struct wf_scopes *scopes;  /* (o) of that thread */
	struct wf_tasks shown;     /* (o) to a dump */
	bool is_used;              /* (a) some thread's */
	bool is_crew;              /* (o) that one is of the crew */
};

/* The contents of a weft_task; as in weft/task.h. */
struct wf_task {
	void (*fn)(void *);
	void *arg;
	uint64_t word;           /* (a) WF_JOIN_*, or who waits for it */
	struct wf_taskdeque *of; /* (o) */
	union {
		int64_t place;          /* (o) in the deque */
		struct weft_task *next; /* (o) while several are set aside */
	};
	struct wf_scope *scope; /* (o) the innermost of its forker */
};
_Static_assert(sizeof(struct wf_task) == sizeof(weft_task), "both are the same");

WF_INLINE struct wf_task *wf_task_of(weft_task *t)
{
	return (struct wf_task *)(void *)t;
}

extern struct wf_taskdeque *wf_taskdeque_all; /* (a) by next */
/* This thread's, or NULL. */
extern __thread struct wf_taskdeque *wf_taskdeque_mine WF_HIDDEN
	__attribute__((tls_model("initial-exec")));

/* One for this thread, which has none. NULL: no memory. */
WF_FACE_CODE struct wf_taskdeque *wf_taskdeque_make(void);
/* Room for twice as many. False: no memory. */
WF_FACE_CODE bool wf_taskdeque_grow(struct wf_taskdeque *d);
/* In a fork child, which the other threads have not come along into. */
WF_FACE_CODE void wf_taskdeque_forget_others(void);

#endif
