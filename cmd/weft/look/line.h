// SPDX-License-Identifier: Apache-2.0
/*
 * A line of a terminal that is being made, column by column.
 *
 * Used by: page.c, pages.c, term.c. Invariant: it is never wider than the terminal, whatever it is made of.
 */
#ifndef WF_LOOK_LINE_H
#define WF_LOOK_LINE_H

#include <stdbool.h>
#include <stddef.h>

#define WF_TERM_LINE_BYTES 4096

struct wf_term;

enum wf_term_style {
	WF_STYLE_PLAIN,
	WF_STYLE_BOLD,
	WF_STYLE_REVERSE,
	WF_STYLE_ALARM, /* red, or bold where colours are not wanted */
};

/* A line that is being made. */
struct wf_line {
	char text[WF_TERM_LINE_BYTES];
	size_t len;
	unsigned at, columns;
	bool is_utf8, has_colours;
};

void wf_line_begin(const struct wf_term *t, struct wf_line *l);
void wf_line_style(struct wf_line *l, enum wf_term_style style);
/* Foreign text, cleaned, in so many columns: cut or filled; width < 0: to the right. */
void wf_line_put(struct wf_line *l, int width, const char *text);
/* As much as there is, and no filling. */
void wf_line_add(struct wf_line *l, const char *text);
/* So that a style goes to the right margin. */
void wf_line_fill(struct wf_line *l);

/* Columns of the valid UTF-8 character at s, and its bytes. */
unsigned wf_line_width(const char *s, size_t *out_bytes);

#endif
