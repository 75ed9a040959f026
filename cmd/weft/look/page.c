// SPDX-License-Identifier: Apache-2.0
/* From rows to lines; see live.h. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "look/page.h"
#include "look/tables.h"

#define ROWS_FOR_SUMMARY 10 /* on a lower page only its first line is shown */
#define SUMMARY_LINES 4

static const char keys[] = " t threads  g groups  l locks  w workers  a all  / filter  < > sort  "
			   "r reverse  p pause  Enter stack  D dump  T trace  q quit";

void wf_page_say(struct wf_live *l, bool is_alarm, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(l->message, sizeof(l->message), format, args);
	va_end(args);
	l->is_alarm = is_alarm;
}

static bool has_summary(const struct wf_live *l)
{
	return l->view != WF_LIVE_PROCESSES && l->summary;
}

/* Lines above the table, without its head. */
static unsigned top_lines(const struct wf_live *l)
{
	if (!has_summary(l))
		return l->term.rows >= 3 ? 1 : 0;
	return l->term.rows >= ROWS_FOR_SUMMARY ? SUMMARY_LINES : l->term.rows >= 4 ? 1 : 0;
}

unsigned wf_page_rows(const struct wf_live *l)
{
	unsigned others = top_lines(l) + 2;

	return l->term.rows > others ? l->term.rows - others : 0;
}

static void draw_top(struct wf_live *l)
{
	const char *at = has_summary(l) ? l->summary : "Processes under weft\n";
	struct wf_line line;

	for (unsigned row = 0; row < top_lines(l); row++) {
		size_t len = strcspn(at, "\n");
		char text[1024];

		snprintf(text, sizeof(text), "%.*s", (int)len, at);
		wf_line_begin(&l->term, &line);
		if (strstr(text, "!! "))
			wf_line_style(&line, WF_STYLE_ALARM);
		else if (row == 0)
			wf_line_style(&line, WF_STYLE_BOLD);
		wf_line_add(&line, text);
		wf_term_show(&l->term, row, &line);
		at += at[len] ? len + 1 : len;
	}
}

/* The next column that is shown, from i on. */
static size_t skip(const struct wf_live *l, size_t i)
{
	return i >= 1 && i <= l->shift ? l->shift + 1 : i;
}

static bool is_shown(const struct wf_live *l, const struct wf_live_column *c)
{
	return l->term.columns >= c->from;
}

static int width_of(const struct wf_live_column *c, const struct wf_line *line)
{
	return c->width ? c->width : (int)(line->columns - line->at);
}

static void draw_head(struct wf_live *l, unsigned row)
{
	const struct wf_live_table *t = &wf_tables[l->view];
	struct wf_line line;

	wf_line_begin(&l->term, &line);
	for (size_t i = 0; i < t->nr_columns && line.at < line.columns; i = skip(l, i + 1)) {
		if (!is_shown(l, &t->columns[i]))
			continue;
		/* The column that rows are sorted by stands out. */
		wf_line_style(&line, i == l->sort[l->view] ? WF_STYLE_BOLD : WF_STYLE_REVERSE);
		wf_line_put(&line, width_of(&t->columns[i], &line), t->columns[i].title);
		wf_line_style(&line, WF_STYLE_REVERSE);
		wf_line_add(&line, " ");
	}
	wf_line_fill(&line);
	wf_term_show(&l->term, row, &line);
}

static void draw_row(struct wf_live *l, unsigned row, size_t n)
{
	const struct wf_live_table *t = &wf_tables[l->view];
	struct wf_line line;

	wf_line_begin(&l->term, &line);
	if (n < l->nr_rows && n == l->cursor)
		wf_line_style(&line, WF_STYLE_REVERSE);
	for (size_t i = 0; n < l->nr_rows && i < t->nr_columns && line.at < line.columns;
	     i = skip(l, i + 1)) {
		char text[512] = "";

		if (!is_shown(l, &t->columns[i]))
			continue;
		t->columns[i].text(l, l->rows[n], text, sizeof(text));
		wf_line_put(&line, width_of(&t->columns[i], &line), text);
		wf_line_add(&line, " ");
	}
	if (n == 0 && !l->nr_rows)
		wf_line_add(&line,
			    l->filter[0] ? "nothing that the filter lets through" : t->lacks);
	else if (n < l->nr_rows && n == l->cursor)
		wf_line_fill(&line);
	wf_term_show(&l->term, row, &line);
}

static void draw_bottom(struct wf_live *l)
{
	struct wf_line line;
	char text[512];

	wf_line_begin(&l->term, &line);
	if (l->is_typing || l->filter[0]) {
		wf_line_style(&line, WF_STYLE_BOLD);
		snprintf(text, sizeof(text), "/%s%s  %zu ", l->filter, l->is_typing ? "_" : "",
			 l->nr_rows);
		wf_line_add(&line, text);
	}
	if (l->is_paused) {
		wf_line_style(&line, WF_STYLE_BOLD);
		wf_line_add(&line, "paused ");
	}
	if (l->message[0]) {
		wf_line_style(&line, l->is_alarm ? WF_STYLE_ALARM : WF_STYLE_BOLD);
		wf_line_add(&line, l->message);
		wf_line_style(&line, WF_STYLE_PLAIN);
		wf_line_add(&line, "  ");
	}
	if (!l->message[0] && !l->is_typing) {
		snprintf(text, sizeof(text), "? help  every %g s ", l->interval_s);
		wf_line_add(&line, text);
		wf_line_add(&line, keys);
	}
	wf_term_show(&l->term, l->term.rows - 1, &line);
}

static void scroll(struct wf_live *l)
{
	unsigned page = wf_page_rows(l);

	if (l->cursor >= l->nr_rows)
		l->cursor = l->nr_rows ? l->nr_rows - 1 : 0;
	if (l->first > l->cursor)
		l->first = l->cursor;
	if (page && l->cursor >= l->first + page)
		l->first = l->cursor - page + 1;
	if (l->first + page > l->nr_rows)
		l->first = l->nr_rows > page ? l->nr_rows - page : 0;
}

void wf_page_draw(struct wf_live *l)
{
	unsigned row = top_lines(l), page = wf_page_rows(l);

	scroll(l);
	draw_top(l);
	if (row + 1 < l->term.rows)
		draw_head(l, row);
	for (unsigned i = 0; i < page; i++)
		draw_row(l, row + 1 + i, l->first + i);
	draw_bottom(l);
	wf_term_flush(&l->term);
}
