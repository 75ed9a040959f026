// SPDX-License-Identifier: Apache-2.0
/*
 * Pages of text in front of the table.
 *
 * Used by: live.c.
 */
#ifndef WF_LOOK_PAGES_H
#define WF_LOOK_PAGES_H

#include "look/live.h"

/* Until a key ends it. False: the terminal is gone. */
bool wf_pages_help(struct wf_live *l);
bool wf_pages_stack(struct wf_live *l, int64_t tid);
/* Writes a file beside us, and says so in the last line. */
void wf_pages_dump(struct wf_live *l);
/* The same of what the threads did last. */
void wf_pages_trace(struct wf_live *l);

#endif
