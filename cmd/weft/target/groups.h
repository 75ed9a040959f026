// SPDX-License-Identifier: Apache-2.0
/*
 * Groups and scopes of a snapshot's threads, and the tree that they are; tasks and fibers.
 *
 * Used by: dump/. Invariant: wf_groups_read() touches the target, which stands still then, and nothing else here does. Its
 * lists may be circular or lead anywhere: each walk has a bound, and each thread and group stands in the tree once.
 */
#ifndef WF_TARGET_GROUPS_H
#define WF_TARGET_GROUPS_H

#include "target/threads.h"

#define WF_GROUPS_NAME_BYTES 48
#define WF_GROUPS_NONE SIZE_MAX

struct wf_dump_scope {
	char name[WF_GROUPS_NAME_BYTES];
	int64_t deadline; /* 0: none */
	bool is_cancelled, is_shield;
};

struct wf_dump_group {
	uint64_t address;
	struct wf_dump_scope scope;
	unsigned policy, limit, nr_left;
	uint64_t owner_scopes; /* of the thread that has opened it */
	size_t owner,
		waiter; /* places in threads, or WF_GROUPS_NONE; waiter: waits for its end, or for room */
};

/* A thread's scopes. */
struct wf_dump_reach {
	size_t group; /* that has made the thread; its place in groups, or WF_GROUPS_NONE */
	size_t first_scope, nr_scopes; /* its own ones, the innermost first */
	int64_t until;                 /* the earliest deadline that counts for it; 0: none */
	bool is_cancelled;             /* one that counts is */
	/* Of its tasks, by tasks.c. taken: by those in a list of places in threads. */
	unsigned nr_waiting, nr_taken;
	size_t first_taker, next_taker; /* WF_GROUPS_NONE: none */
	size_t runs_of; /* the thread whose task this one has taken, or WF_GROUPS_NONE */
	/* Of its fibers, by fibers.c. */
	uint64_t own_fiber;                            /* that its own stack is; 0: it has none */
	size_t first_fiber, nr_fibers_read, nr_fibers; /* nr: with those that were only counted */
};

struct wf_dump_fiber {
	char name[WF_GROUPS_NAME_BYTES];
	uint64_t address, resumer, resuming, parent; /* of fibers; 0: none */
	unsigned state, rank;                        /* rank: they are in this order */
	struct wf_dump_thread
		stack; /* where it was left, as of a thread, if that one's stack does not lead through it */
};

/* A thread, or a group; depth: 0 at the top. */
struct wf_dump_node {
	bool is_group;
	size_t index;
	unsigned depth;
};

struct wf_groups {
	struct wf_dump_group *groups; /* by address */
	size_t nr_groups;
	struct wf_dump_reach *
		reaches; /* one of each thread, in the order of the threads; NULL: nothing was read */
	struct wf_dump_scope *scopes;
	size_t nr_scopes;
	struct wf_dump_fiber *fibers;
	size_t nr_fibers;
};

/* only: of the thread with that number, and the groups that it is in or has opened; 0: all. False: out of memory. A target that does not tell of groups has none. */
bool wf_groups_read(struct wf_groups *out, const struct wf_layout *l, const struct wf_target *t,
		    const struct wf_threads *s, int64_t only);
void wf_groups_done(struct wf_groups *g);

/* Threads and groups in the order in which they are printed; NULL: out of memory. To be freed. */
struct wf_dump_node *wf_groups_tree(const struct wf_groups *g, const struct wf_threads *s,
				    size_t *out_nr);

#endif
