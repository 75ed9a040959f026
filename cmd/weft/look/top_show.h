// SPDX-License-Identifier: Apache-2.0
/*
 * The findings of `weft top`, as text or as a line of JSON.
 *
 * Used by: top.c. Invariant: every name from the target passes through text.h.
 */
#ifndef WF_LOOK_TOP_SHOW_H
#define WF_LOOK_TOP_SHOW_H

#include "look/rates.h"
#include "text.h"

/* Four lines about the process. */
void wf_top_show_summary(struct wf_look *l, const struct wf_rates_look *r, const struct wf_rates *d,
			 FILE *out);

/* One process, with at most limit of its threads. */
void wf_top_show_text(struct wf_look *l, const struct wf_rates_look *r, const struct wf_rates *d,
		      size_t limit);
void wf_top_show_json(struct wf_text_json *j, struct wf_look *l, const struct wf_rates_look *r,
		      const struct wf_rates *d, size_t limit);

/* One of many: a row under the head. */
void wf_top_show_head(void);
void wf_top_show_row(struct wf_look *l, const struct wf_rates_look *r, const struct wf_rates *d);

#endif
