// SPDX-License-Identifier: Apache-2.0
/*
 * An event in words.
 *
 * Used by: dump/events.c, trace/. Invariant: the names are the target's, as layout.c has made them plain. The meaning of an
 * event's arguments is found by its name, in src/trace/event_list.h.
 */
#ifndef WF_TARGET_EVENTTEXT_H
#define WF_TARGET_EVENTTEXT_H

#include <stdio.h>

#include "target/layout.h"

/* Without a line's end. */
void wf_eventtext_print(FILE *out, const struct wf_layout *l, unsigned event, uint64_t a,
			uint64_t b);

#endif
