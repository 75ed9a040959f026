// SPDX-License-Identifier: Apache-2.0
/* Lines of a terminal, column by column; see line.h. */
#include <stdio.h>
#include <string.h>

#include "look/term.h"
#include "text.h"

#define ROOM 64 /* for the last sequences of a line */

struct range {
	unsigned from, to;
};

/* Characters that add nothing to the width of a line. */
static const struct range zero[] = {
	{ 0x300, 0x36f },   { 0x483, 0x489 },     { 0x591, 0x5bd },   { 0x610, 0x61a },
	{ 0x64b, 0x65f },   { 0x6d6, 0x6dc },     { 0x900, 0x902 },   { 0x93c, 0x93c },
	{ 0x941, 0x948 },   { 0xe31, 0xe31 },     { 0xe34, 0xe3a },   { 0xe47, 0xe4e },
	{ 0x1160, 0x11ff }, { 0x1ab0, 0x1aff },   { 0x1dc0, 0x1dff }, { 0x200b, 0x200f },
	{ 0x2060, 0x2064 }, { 0x20d0, 0x20ff },   { 0xfe00, 0xfe0f }, { 0xfe20, 0xfe2f },
	{ 0xfeff, 0xfeff }, { 0xe0100, 0xe01ef },
};

/* Those that take two columns. */
static const struct range wide[] = {
	{ 0x1100, 0x115f },   { 0x231a, 0x231b },   { 0x2329, 0x232a },   { 0x23e9, 0x23ec },
	{ 0x25fd, 0x25fe },   { 0x2614, 0x2615 },   { 0x2648, 0x2653 },   { 0x26a1, 0x26a1 },
	{ 0x26d4, 0x26d4 },   { 0x2705, 0x2705 },   { 0x2728, 0x2728 },   { 0x274c, 0x274c },
	{ 0x2e80, 0x303e },   { 0x3041, 0x4dbf },   { 0x4e00, 0xa4cf },   { 0xa960, 0xa97f },
	{ 0xac00, 0xd7a3 },   { 0xf900, 0xfaff },   { 0xfe30, 0xfe6f },   { 0xff00, 0xff60 },
	{ 0xffe0, 0xffe6 },   { 0x1f300, 0x1f64f }, { 0x1f680, 0x1f6ff }, { 0x1f900, 0x1f9ff },
	{ 0x20000, 0x3fffd },
};

static bool is_in(unsigned code, const struct range *list, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		if (code >= list[i].from && code <= list[i].to)
			return true;
	}
	return false;
}

unsigned wf_line_width(const char *s, size_t *out_bytes)
{
	const unsigned char *c = (const unsigned char *)s;
	size_t bytes = c[0] < 0x80 ? 1 : c[0] < 0xe0 ? 2 : c[0] < 0xf0 ? 3 : 4;
	unsigned code = bytes == 1 ? c[0] : c[0] & (0xffu >> (bytes + 1));

	for (size_t i = 1; i < bytes; i++)
		code = code << 6 | (c[i] & 0x3f);
	*out_bytes = bytes;
	if (code < 0x300)
		return 1;
	if (is_in(code, zero, sizeof(zero) / sizeof(zero[0])))
		return 0;
	return is_in(code, wide, sizeof(wide) / sizeof(wide[0])) ? 2 : 1;
}

void wf_line_begin(const struct wf_term *t, struct wf_line *l)
{
	l->len = l->at = 0;
	l->text[0] = '\0';
	l->columns = t->columns;
	l->is_utf8 = t->is_utf8;
	l->has_colours = t->has_colours;
}

static void append(struct wf_line *l, const char *text, size_t len)
{
	if (l->len + len + ROOM > sizeof(l->text))
		return;
	memcpy(l->text + l->len, text, len);
	l->len += len;
	l->text[l->len] = '\0';
}

void wf_line_style(struct wf_line *l, enum wf_term_style style)
{
	static const char *const sequences[] = {
		[WF_STYLE_PLAIN] = "\033[0m",
		[WF_STYLE_BOLD] = "\033[0;1m",
		[WF_STYLE_REVERSE] = "\033[0;7m",
		[WF_STYLE_ALARM] = "\033[0;1;31m",
	};

	if (style == WF_STYLE_ALARM && !l->has_colours)
		style = WF_STYLE_BOLD;
	append(l, sequences[style], strlen(sequences[style]));
}

static void fill(struct wf_line *l, unsigned to)
{
	for (; l->at < to && l->at < l->columns; l->at++)
		append(l, " ", 1);
}

/* Up to the column `end`. A terminal may know another width of what is not ASCII: it is told where it goes on. */
static void put_until(struct wf_line *l, const char *text, unsigned end)
{
	bool is_foreign = false;
	char place[16];

	while (*text && l->at < end) {
		size_t bytes;
		unsigned width = wf_line_width(text, &bytes);

		if (bytes > 1 && !l->is_utf8) {
			append(l, "?", 1);
			l->at++;
			text += bytes;
			continue;
		}
		if (l->at + width > end)
			break;
		is_foreign |= bytes > 1;
		append(l, text, bytes);
		l->at += width;
		text += bytes;
	}
	if (is_foreign && l->at < l->columns)
		append(l, place, (size_t)snprintf(place, sizeof(place), "\033[%uG", l->at + 1));
}

static unsigned width_of(const struct wf_line *l, const char *text)
{
	unsigned sum = 0;

	while (*text) {
		size_t bytes;
		unsigned width = wf_line_width(text, &bytes);

		sum += bytes > 1 && !l->is_utf8 ? 1 : width;
		text += bytes;
	}
	return sum;
}

void wf_line_put(struct wf_line *l, int width, const char *text)
{
	unsigned columns = (unsigned)(width < 0 ? -width : width), end = l->at + columns, needed;
	char plain[1024];

	if (end > l->columns)
		end = l->columns;
	wf_text_clean(plain, sizeof(plain), text);
	needed = width < 0 ? width_of(l, plain) : columns;
	if (needed < columns)
		fill(l, l->at + columns - needed);
	put_until(l, plain, end);
	fill(l, end);
}

void wf_line_add(struct wf_line *l, const char *text)
{
	char plain[WF_TERM_LINE_BYTES / 2];

	wf_text_clean(plain, sizeof(plain), text);
	put_until(l, plain, l->columns);
}

void wf_line_fill(struct wf_line *l)
{
	fill(l, l->columns);
}
