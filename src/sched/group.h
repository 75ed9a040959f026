// SPDX-License-Identifier: Apache-2.0
/*
 * Groups of threads, and cancellation: the tree that scopes and groups make, and how it is walked.
 *
 * Called by: native/scope.c, native/group.c; from weft's threads and, in native mode, from others: self is NULL there.
 *
 * A group belongs to the thread that opens it, and lies inside the scope that was that one's innermost then; each of its
 * threads begins with the group's scope as its outermost. Locks are taken from the root of the tree down: of a thread (its
 * groups), of a group (its threads), of one of those. Cancelling walks down with all locks of the path held, so nobody on it
 * goes away; whoever joins takes the lock of its group, and looks for itself afterwards. A thread that runs a task of
 * another's hangs below that one as a group does: the forker's lock comes first, and whoever forks does not help, so that
 * there is no circle.
 *
 * Invariant: a thread is a member from before its function begins until after that has ended, and a group is not closed
 * while it has members, nor a scope while a group lies in it.
 *
 * Memory of groups stays memory of groups: weft_group_cancel() may come as the group ends.
 */
#ifndef WF_SCHED_GROUP_H
#define WF_SCHED_GROUP_H

#include "sched/scope.h"

enum wf_group_policy {
	WF_GROUP_ALL,
	WF_GROUP_ANY,
	WF_GROUP_EACH
}; /* weft_group_policy */

/* (legend: thread.h) */
struct wf_group {
	struct wf_scope scope; /* what its threads are in */
	struct wf_spin lock;
	uint32_t nr;            /* (q) threads that were counted in and have not left */
	struct wf_list members; /* (q) wf_scopes.link */
	struct wf_list waiters; /* (q) struct wf_group_waiter */
	struct wf_list link;    /* (q) under owner->lock */
	const void *user;       /* (q) the program's weft_group, NULL: not in use */
	int error;              /* (q) of the first thread that had one */
	bool has_success;       /* (q) */
	bool is_cancelled;      /* (q) its policy has done it */
	uint32_t limit, policy; /* (a) as the program has them, for dumps */
	struct wf_group *next_free;
};

/* By the opener. deadline: WF_NEVER for none. */
void wf_group_open(struct wf_thread *self, struct wf_scopes *sc, struct wf_group *g,
		   int64_t deadline, const char *name, const void *user);
/* Of no members. */
void wf_group_close(struct wf_thread *self, struct wf_group *g);
/* One more is about to be made. False: there are as many as the limit allows; 0: any number. */
bool wf_group_count_in(struct wf_thread *self, struct wf_group *g, uint32_t limit);
/* It could not be made after all. True: there are no others. */
bool wf_group_count_out(struct wf_thread *self, struct wf_group *g);
/* Is it over for its threads? 0; or -ECANCELED, -ETIMEDOUT. */
int wf_group_error(struct wf_thread *self, struct wf_scopes *sc, struct wf_group *g);
/* The same of the caller's scopes, which it tells the program; by: WF_SCOPE_BY_*. */
int wf_group_check(struct wf_thread *self, struct wf_scopes *sc, uint32_t by);
/* By that one: first and last thing of all. It has dropped its scopes when it leaves: top is NULL. */
void wf_group_join(struct wf_thread *self, struct wf_scopes *sc, struct wf_group *g);
void wf_group_leave(struct wf_thread *self, struct wf_scopes *sc);
/*
 * A thread of no group and no scope runs a task that forker has forked in s, and is told of what ends s until it has
 * returned. forker joins the task before it leaves s, so both are there until then.
 */
void wf_group_help(struct wf_thread *self, struct wf_scopes *sc, struct wf_scopes *forker,
		   struct wf_scope *s);
void wf_group_help_no_more(struct wf_thread *self, struct wf_scopes *sc);
/* One has ended with that result; see enum weft_group_policy. True: the caller is to cancel the group. */
bool wf_group_report(struct wf_thread *self, struct wf_group *g, int result, unsigned policy);

/*
 * Until at most so many threads are left. until: WF_NEVER, or when to give up: -ETIMEDOUT. is_reached: the caller's scopes
 * end it: -ETIMEDOUT, -ECANCELED. -EINTR: signals are to be seen to, and then it is to be called again.
 */
WF_PARKS int wf_group_wait(struct wf_thread *self, struct wf_scopes *sc, struct wf_group *g,
			   uint32_t at_most, int64_t until, bool is_reached);
/* (p) before the program begins. A thread that is not weft's waits no longer at a time: -EINTR. WF_NEVER, usually. */
extern int64_t wf_group_look_ns;

/* A scope is over from now on; s is open, and so is the group of user, or nothing happens. */
void wf_group_cancel_scope(struct wf_thread *self, struct wf_scope *s);
/* s, of the caller's, lies in other scopes than before: if one of them is over, the threads of groups in s are told. */
void wf_group_tell(struct wf_thread *self, struct wf_scopes *sc, const struct wf_scope *s);
void wf_group_cancel(struct wf_thread *self, struct wf_group *g, const void *user);

/* The name of a group that lies in s, or with s NULL of any; NULL: there is none. */
const char *wf_group_in(struct wf_thread *self, struct wf_scopes *sc, const struct wf_scope *s);
/* The same of one that lies in a scope which is not in the chain any more. */
const char *wf_group_lost(struct wf_thread *self, struct wf_scopes *sc);

#endif
