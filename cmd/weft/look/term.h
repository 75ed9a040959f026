// SPDX-License-Identifier: Apache-2.0
/*
 * A terminal as a page of lines, and its keys.
 *
 * Used by: live.c and what draws for it. Sequences of ECMA-48 and four of xterm's private modes, which every terminal of
 * today knows: no library and no file that describes terminals is needed where the command runs.
 *
 * Invariant: whatever ends or stops this process short of SIGKILL and SIGSTOP, the terminal is as it was before.
 */
#ifndef WF_LOOK_TERM_H
#define WF_LOOK_TERM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "look/line.h"

#define WF_TERM_MAX_ROWS 1000u
#define WF_TERM_MAX_COLUMNS 1000u

enum wf_term_key {
	WF_KEY_NONE, /* the time is over */
	WF_KEY_ESCAPE = 27,
	WF_KEY_UP = 256,
	WF_KEY_DOWN,
	WF_KEY_LEFT,
	WF_KEY_RIGHT,
	WF_KEY_PAGE_UP,
	WF_KEY_PAGE_DOWN,
	WF_KEY_HOME,
	WF_KEY_END,
	WF_KEY_REDRAW, /* another size, or back from a stop: nothing is on the page */
	WF_KEY_GONE,   /* the terminal */
};

struct wf_term {
	int in;
	bool is_own_in; /* in was opened by us */
	unsigned rows, columns;
	bool is_utf8, has_colours;
	char *shown[WF_TERM_MAX_ROWS]; /* NULL: not known */
	char *out;                     /* what is to be written */
	size_t out_len, out_room;
	unsigned char pending[64]; /* bytes of keys */
	size_t nr_pending;
};

/* Can it be one? Standard output is a terminal that is not dumb, and keys can be read from one. */
bool wf_term_is_there(void);

/* False: it is not there any more. Release with wf_term_close(). */
bool wf_term_open(struct wf_term *t);
void wf_term_close(struct wf_term *t);

/* A byte or an enum wf_term_key; waits for timeout_ms at most. */
int wf_term_key(struct wf_term *t, int timeout_ms);

/* The line stands in this row from the next wf_term_flush() on; only what changed is written. */
void wf_term_show(struct wf_term *t, unsigned row, const struct wf_line *l);
void wf_term_flush(struct wf_term *t);

#endif
