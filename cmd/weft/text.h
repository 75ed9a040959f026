// SPDX-License-Identifier: Apache-2.0
/*
 * Text that came from outside (names in files, environment) on its way to a terminal or to JSON.
 *
 * Used by: everything in this folder that prints. Invariant: what comes out holds no control
 * character and is valid UTF-8, whatever went in.
 */
#ifndef WF_TEXT_H
#define WF_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Copies from to out, replacing control characters, marks of direction and broken UTF-8 by '?'; cuts what does not fit.
 * Returns out. */
char *wf_text_clean(char *out, size_t bytes, const char *from);

/*
 * Colour: what to print in front of words of that tone, and behind them. Empty unless standard output is a terminal, TERM
 * knows escapes and NO_COLOR is not set; nothing that matters is told by colour alone.
 */
enum wf_text_tone {
	WF_TEXT_PLAIN,
	WF_TEXT_GOOD,
	WF_TEXT_DOUBT,
	WF_TEXT_BAD,
	WF_TEXT_STRONG
};

const char *wf_text_tone(enum wf_text_tone tone);
const char *wf_text_plain(void);

/*
 * A JSON document written front to back. The caller keeps begin and end in pairs; the writer puts
 * commas and line ends. A name is NULL inside an array.
 */
struct wf_text_json {
	FILE *out;
	unsigned int depth;
	bool is_line;     /* all in one line */
	bool has_sibling; /* something was already written at this depth */
};

void wf_text_json_begin(struct wf_text_json *j, const char *name, char bracket);
void wf_text_json_end(struct wf_text_json *j, char bracket);
void wf_text_json_string(struct wf_text_json *j, const char *name, const char *value);
void wf_text_json_number(struct wf_text_json *j, const char *name, long long value);
void wf_text_json_real(struct wf_text_json *j, const char *name,
		       double value); /* null: not finite */
void wf_text_json_bool(struct wf_text_json *j, const char *name, bool value);

#endif
