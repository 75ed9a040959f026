// SPDX-License-Identifier: Apache-2.0
/*
 * The rows of a page: which, and in what order.
 *
 * Used by: live.c.
 */
#ifndef WF_LOOK_ROWS_H
#define WF_LOOK_ROWS_H

#include "look/live.h"

/* Those that the filter lets through, sorted. */
void wf_rows_make(struct wf_live *l);

#endif
