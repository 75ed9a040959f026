// SPDX-License-Identifier: Apache-2.0
/*
 * A page of a table, line by line.
 *
 * Used by: live.c, pages.c.
 */
#ifndef WF_LOOK_PAGE_H
#define WF_LOOK_PAGE_H

#include "look/live.h"

void wf_page_draw(struct wf_live *l);
/* Rows of the table that there is room for. */
unsigned wf_page_rows(const struct wf_live *l);
/* In the last line. */
void __attribute__((format(printf, 3, 4)))
wf_page_say(struct wf_live *l, bool is_alarm, const char *format, ...);

#endif
