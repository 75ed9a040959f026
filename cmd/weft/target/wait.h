// SPDX-License-Identifier: Apache-2.0
/*
 * The wait of a thread, in words: the owner of a mutex, the other end of a socket.
 *
 * Used by: dump/, look/, trace/take.c.
 */
#ifndef WF_TARGET_WAIT_H
#define WF_TARGET_WAIT_H

#include "target/unwind.h"

struct wf_text_json;
struct wf_waits;

struct wf_wait_text {
	char kind[24];  /* "mutex", "join", "fd", ... */
	char what[384]; /* the object, in words */
	int64_t owner;  /* tid of the thread that holds it, or is joined; 0: unknown */
	int fd;         /* -1: none */
	double since_s; /* waits for so long; < 0: unknown */
	double left_s;  /* until the deadline; see has_deadline */
	bool has_deadline;
};

/* u: NULL where there are no stacks; objects then have addresses, not names. */
struct wf_waits *wf_waits_new(const struct wf_target *t, const struct wf_threads *s,
			      const struct wf_layout *l, struct wf_unwind *u);
void wf_waits_free(struct wf_waits *w);

/* Does it wait, or block in a call? */
bool wf_waits_is_waiting(const struct wf_layout *l, const struct wf_dump_thread *d);
void wf_waits_describe(struct wf_waits *w, const struct wf_dump_thread *d,
		       struct wf_wait_text *out);

/* As the field "waits_for" of an object. */
void wf_waits_json(const struct wf_wait_text *w, struct wf_text_json *j);

/* The thread that holds the mutex d waits for, or that d joins; NULL: none, or not known. */
const struct wf_dump_thread *wf_waits_owner(struct wf_waits *w, const struct wf_dump_thread *d);
/* Is it owner's end that d waits for? */
bool wf_waits_is_join(const struct wf_dump_thread *owner, const struct wf_dump_thread *d);

/* Name of a system call, or NULL. */
const char *wf_waits_call_name(long nr);

#endif
