// SPDX-License-Identifier: Apache-2.0
/*
 * The meaning of the events: who had which worker when, who woke whom, who waited for what.
 *
 * Used by: perfetto.c, json.c. Invariants of what is told, whatever the events are: times never go back; on each lane the
 * thread that leaves is the one that came last; a thread is on one lane at most; of a thread, what began last ends first, and
 * all that began ends.
 */
#ifndef WF_TRACE_STORY_H
#define WF_TRACE_STORY_H

#include "trace/take.h"

enum wf_story_kind {
	WF_STORY_SWITCH,  /* on lane cpu: from prev, in state, to tid; 0: nobody */
	WF_STORY_WAKE,    /* of tid, by prev (0: the scheduler), seen on lane cpu */
	WF_STORY_WAIT,    /* of tid, for a and b: the kind of wait, and what for */
	WF_STORY_CALL,    /* of tid: call a with first argument b */
	WF_STORY_END,     /* of what tid began last; a: what a call returned, if has_value */
	WF_STORY_PREEMPT, /* of tid, at address a */
};

/* Of a thread that leaves its lane: as the letters of ps(1). */
enum wf_story_state {
	WF_STORY_READY = 'R',
	WF_STORY_WAITS = 'S',
	WF_STORY_IN_CALL = 'D',
	WF_STORY_DEAD = 'X',
};

struct wf_story_item {
	enum wf_story_kind kind;
	enum wf_story_state state;
	unsigned cpu;
	bool has_value;
	int64_t ns, tid, prev;
	unsigned nr_ready,
		nr_running; /* after it: threads on no lane that could be, and on one; as far as was told */
	uint64_t a, b;
};

struct wf_story;

/* NULL: out of memory. */
struct wf_story *wf_story_new(const struct wf_take *k);
void wf_story_free(struct wf_story *s);

/* Once. The lanes below the number of workers are theirs; a bound thread has one above. */
void wf_story_tell(struct wf_story *s, void (*tell)(void *arg, const struct wf_story_item *i),
		   void *arg);

/* The threads of which there are events, ended with 0. */
const int64_t *wf_story_threads(const struct wf_story *s);

/* Does this call not return to where it was made? Its number is x86-64's, as the command's own. */
bool wf_story_is_endless(uint64_t call);

#endif
