// SPDX-License-Identifier: Apache-2.0
/*
 * Cleaning of foreign text, and a small JSON writer.
 *
 * Called by: main.c, doctor.c, report.c. Invariant: see text.h.
 *
 * Considered and dropped: a JSON library. The command writes two flat documents and reads none; a
 * dependency would be the largest part of it.
 */
#include "text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Length of the UTF-8 sequence at s (1 to 4), 0 if it is none. NUL ends any sequence early. */
static size_t sequence_length(const unsigned char *s)
{
	static const unsigned int least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t len = s[0] < 0x80   ? 1
		     : s[0] < 0xc2 ? 0
		     : s[0] < 0xe0 ? 2
		     : s[0] < 0xf0 ? 3
		     : s[0] < 0xf5 ? 4
				   : 0;
	unsigned int code = len > 1 ? s[0] & (0x7fu >> len) : s[0];

	for (size_t i = 1; i < len; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (s[i] & 0x3f);
	}
	if (len > 1 && (code < least[len] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)))
		return 0;
	return len;
}

/* A character of three bytes that changes the direction of what follows, or begins a line. */
static bool turns_text(const unsigned char *s)
{
	return s[0] == 0xe2 && ((s[1] == 0x80 && (s[2] == 0x8e || s[2] == 0x8f ||
						  (s[2] >= 0xa8 && s[2] <= 0xae))) ||
				(s[1] == 0x81 && s[2] >= 0xa6 && s[2] <= 0xa9));
}

static bool is_control(const unsigned char *s)
{
	/* C1 controls are U+0080 to U+009F: a terminal obeys them, too. */
	return s[0] < 0x20 || s[0] == 0x7f || (s[0] == 0xc2 && s[1] < 0xa0);
}

char *wf_text_clean(char *out, size_t bytes, const char *from)
{
	const unsigned char *s = (const unsigned char *)from;
	size_t used = 0;

	while (*s) {
		size_t len = sequence_length(s);
		bool is_bad = len == 0 || is_control(s) || turns_text(s);
		size_t step = len ? len : 1;

		if (used + (is_bad ? 1 : len) >= bytes)
			break;
		if (is_bad) {
			out[used++] = '?';
		} else {
			memcpy(out + used, s, len);
			used += len;
		}
		s += step;
	}
	out[used] = '\0';
	return out;
}

static void write_string(FILE *out, const char *value)
{
	const unsigned char *s = (const unsigned char *)value;

	putc_unlocked('"', out);
	while (*s) {
		size_t len = sequence_length(s);

		if (len == 0) {
			fputs("\\ufffd", out);
			len = 1;
		} else if (*s == '"' || *s == '\\') {
			fprintf(out, "\\%c", *s);
		} else if (is_control(s)) {
			/* Of two bytes those of U+0080 to U+009F: the second is the number. */
			fprintf(out, "\\u%04x", s[len - 1]);
		} else {
			fwrite_unlocked(s, 1, len, out);
		}
		s += len;
	}
	putc_unlocked('"', out);
}

static bool is_colored(void)
{
	static int known; /* 0: not asked yet */
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

	if (!known)
		known = isatty(STDOUT_FILENO) && !(no && *no) && term && *term &&
					strcmp(term, "dumb") != 0
				? 1
				: -1;
	return known > 0;
}

const char *wf_text_tone(enum wf_text_tone tone)
{
	static const char *const codes[] = {
		[WF_TEXT_PLAIN] = "",         [WF_TEXT_GOOD] = "\033[32m",
		[WF_TEXT_DOUBT] = "\033[33m", [WF_TEXT_BAD] = "\033[1;31m",
		[WF_TEXT_STRONG] = "\033[1m",
	};

	return is_colored() ? codes[tone] : "";
}

const char *wf_text_plain(void)
{
	return is_colored() ? "\033[0m" : "";
}

static void start_member(struct wf_text_json *j, const char *name)
{
	if (j->has_sibling)
		fputc(',', j->out);
	if (j->depth > 0 && !j->is_line)
		fprintf(j->out, "\n%*s", (int)(2 * j->depth), "");
	if (name) {
		write_string(j->out, name);
		fputs(": ", j->out);
	}
	j->has_sibling = true;
}

void wf_text_json_begin(struct wf_text_json *j, const char *name, char bracket)
{
	start_member(j, name);
	fputc(bracket, j->out);
	j->depth++;
	j->has_sibling = false;
}

void wf_text_json_end(struct wf_text_json *j, char bracket)
{
	j->depth--;
	if (j->has_sibling && !j->is_line)
		fprintf(j->out, "\n%*s", (int)(2 * j->depth), "");
	fputc(bracket, j->out);
	if (j->depth == 0)
		fputc('\n', j->out);
	j->has_sibling = true;
}

void wf_text_json_string(struct wf_text_json *j, const char *name, const char *value)
{
	start_member(j, name);
	write_string(j->out, value);
}

void wf_text_json_number(struct wf_text_json *j, const char *name, long long value)
{
	start_member(j, name);
	fprintf(j->out, "%lld", value);
}

void wf_text_json_real(struct wf_text_json *j, const char *name, double value)
{
	start_member(j, name);
	if (isfinite(value))
		fprintf(j->out, "%.10g", value);
	else
		fputs("null", j->out);
}

void wf_text_json_bool(struct wf_text_json *j, const char *name, bool value)
{
	start_member(j, name);
	fputs(value ? "true" : "false", j->out);
}
