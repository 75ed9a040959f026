// SPDX-License-Identifier: Apache-2.0
/* The loop of looks and keys; see live.h. */
#include "look/live.h"

#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "look/page.h"
#include "look/pages.h"
#include "look/rows.h"
#include "look/tables.h"
#include "look/top_show.h"
#include "target/find.h"

#define MAX_THREADS 100000
#define MAX_PROCESSES 1000
#define FIRST_S 0.3 /* until the second look, which brings the first figures */
#define MIN_INTERVAL_S 0.1
#define MAX_INTERVAL_S 3600
#define KEPT_BYTES (64 << 20)
#define EXIT_ENDED 3
#define SHARE 5 /* of the time, one part at most is for looking */

/* --- one process --- */

static void forget_process(struct wf_live *l)
{
	wf_waits_free(l->waits);
	free(l->groups);
	free(l->summary);
	l->waits = NULL;
	l->groups = NULL;
	l->nr_groups = 0;
	l->summary = NULL;
	wf_rates_done(&l->looks[0]);
	wf_rates_done(&l->looks[1]);
	wf_shares_done(&l->shares);
	if (l->pid)
		wf_look_done(&l->look);
	l->now = -1;
	l->pid = 0;
}

static const char *base_name(const char *program)
{
	const char *base = strrchr(program, '/');

	return base ? base + 1 : program;
}

static void over(struct wf_live *l)
{
	l->is_over = true;
	wf_page_say(l, true, "%s; q quits, a shows all processes", l->look.target.error);
}

static bool choose(struct wf_live *l, int pid)
{
	forget_process(l);
	l->is_over = false;
	l->message[0] = '\0';
	if (!wf_look_open(&l->look, pid)) {
		wf_page_say(l, true, "%s", l->look.target.error);
		wf_look_done(&l->look);
		return false;
	}
	l->pid = pid;
	return true;
}

static void make_summary(struct wf_live *l, const struct wf_rates_look *now)
{
	size_t bytes;
	FILE *out;

	free(l->summary);
	l->summary = NULL;
	out = open_memstream(&l->summary, &bytes);
	if (!out)
		return;
	wf_top_show_summary(&l->look, now, &l->rates, out);
	fclose(out);
}

/* The page is made anew from the look that is there; after a key, without another look. */
static void arrange(struct wf_live *l)
{
	if (l->view != WF_LIVE_PROCESSES && l->now >= 0 &&
	    (l->view == WF_LIVE_GROUPS || l->view == WF_LIVE_LOCKS))
		wf_tables_make_groups(l);
	wf_rows_make(l);
}

/* The columns that are called so in options. */
static void sort_by(struct wf_live *l, enum wf_rates_sort sort)
{
	static const size_t columns[] = { [WF_RATES_BY_CPU] = 3,
					  [WF_RATES_BY_SWITCHES] = 7,
					  [WF_RATES_BY_WAIT] = 8,
					  [WF_RATES_BY_TID] = 0 };

	for (int i = 0; i < WF_LIVE_NR_VIEWS; i++)
		l->sort[i] = wf_tables[i].sort;
	l->sort[WF_LIVE_THREADS] = columns[sort];
}

static void look_at_one(struct wf_live *l)
{
	int to = l->now < 0 ? 0 : !l->now;
	struct wf_rates_look *before = l->now < 0 ? NULL : &l->looks[l->now], next;
	unsigned nr_opened = l->look.nr_opened;

	if (!wf_rates_look(&l->look, &next, MAX_THREADS, before)) {
		wf_rates_done(&next);
		over(l);
		return;
	}
	if (l->look.nr_opened != nr_opened) {
		wf_page_say(l, true, "process %d has executed %s", l->pid,
			    base_name(l->look.target.program));
		wf_shares_done(&l->shares);
		before = NULL;
	}
	wf_rates_done(&l->looks[to]);
	l->looks[to] = next;
	wf_rates_between(&l->look, before ? before : &l->looks[to], &l->looks[to],
			 WF_RATES_UNSORTED, &l->rates);
	l->now = to;
	wf_shares_look(&l->shares, &l->look.layout, &next.threads, next.cost_s);
	l->rates.shares = &l->shares;
	wf_waits_free(l->waits);
	l->waits = wf_waits_new(&l->look.target, &l->looks[to].threads, &l->look.layout, NULL);
	make_summary(l, &l->looks[to]);
}

/* --- all processes --- */

static void forget_one(struct wf_live_process *p)
{
	wf_rates_done(&p->looks[0]);
	wf_rates_done(&p->looks[1]);
	if (p->is_open)
		wf_look_done(&p->look);
	*p = (struct wf_live_process){ .now = -1 };
}

static struct wf_live_process *known(struct wf_live *l, int pid)
{
	for (size_t i = 0; i < l->nr_processes; i++) {
		if (l->processes[i].is_open && l->processes[i].look.target.pid == pid)
			return &l->processes[i];
	}
	return NULL;
}

/* False: it is gone, or may not be looked at. */
static bool look_at_process(struct wf_live_process *p)
{
	int to = p->now < 0 ? 0 : !p->now;
	struct wf_rates_look next, *before = p->now < 0 ? NULL : &p->looks[p->now];

	if (!wf_rates_look(&p->look, &next, MAX_THREADS, before)) {
		wf_rates_done(&next);
		return false;
	}
	wf_rates_done(&p->looks[to]);
	p->looks[to] = next;
	wf_rates_between(&p->look, before ? before : &p->looks[to], &p->looks[to],
			 WF_RATES_UNSORTED, &p->rates);
	p->now = to;
	return true;
}

/* A structure that has been moved: its reads count against a budget inside of it. */
static void move_process(struct wf_live_process *to, struct wf_live_process *from)
{
	*to = *from;
	to->look.target.budget = &to->look.budget;
	*from = (struct wf_live_process){ .now = -1 };
}

static void look_at_all(struct wf_live *l)
{
	struct wf_live_process *next;
	struct wf_find f;
	size_t nr = 0;

	if (!wf_find_all(&f)) {
		wf_find_done(&f);
		return;
	}
	next = calloc(f.nr_processes + 1, sizeof(*next));
	for (size_t i = 0; next && i < f.nr_processes && nr < MAX_PROCESSES; i++) {
		struct wf_live_process *p = &next[nr], *old = known(l, f.processes[i].pid);

		p->now = -1;
		if (old)
			move_process(p, old);
		else
			p->is_open = wf_look_open(&p->look, f.processes[i].pid);
		if (!p->is_open)
			wf_look_done(&p->look);
		if (p->is_open && look_at_process(p))
			nr++;
		else
			forget_one(p);
	}
	wf_find_done(&f);
	for (size_t i = 0; i < l->nr_processes; i++)
		forget_one(&l->processes[i]);
	free(l->processes);
	l->processes = next;
	l->nr_processes = next ? nr : 0;
}

static void look(struct wf_live *l)
{
	if (l->view == WF_LIVE_PROCESSES)
		look_at_all(l);
	else if (!l->is_over)
		look_at_one(l);
	arrange(l);
}

/* --- keys --- */

static size_t under_cursor(const struct wf_live *l)
{
	return l->cursor < l->nr_rows ? l->rows[l->cursor] : SIZE_MAX;
}

static int chosen_pid(const struct wf_live *l)
{
	size_t row = under_cursor(l);

	return row == SIZE_MAX ? 0 : l->processes[row].look.target.pid;
}

static int64_t chosen_tid(const struct wf_live *l)
{
	const struct wf_threads *s = l->now < 0 ? NULL : &l->looks[l->now].threads;
	size_t row = under_cursor(l);

	if (row == SIZE_MAX || !s)
		return 0;
	switch (l->view) {
	case WF_LIVE_THREADS:
		return s->threads[row].tid;
	case WF_LIVE_GROUPS:
		return l->groups[row].oldest->tid;
	case WF_LIVE_LOCKS:
		return l->groups[row].owner->tid;
	default:
		return row < s->nr_workers ? s->workers[row].cur_tid : 0;
	}
}

/* True: there is something to look at at once. */
static bool change_view(struct wf_live *l, enum wf_live_view view)
{
	bool is_new = false;

	if (view != WF_LIVE_PROCESSES && l->view == WF_LIVE_PROCESSES) {
		int pid = chosen_pid(l);

		if (pid && pid != l->pid && !choose(l, pid))
			return false;
		if (!l->pid)
			return false;
		is_new = true;
	}
	is_new |= view == WF_LIVE_PROCESSES && l->view != view;
	l->view = view;
	l->cursor = l->first = l->shift = 0;
	if (!l->is_over)
		l->message[0] = '\0';
	return is_new;
}

static void change_sort(struct wf_live *l, int step)
{
	size_t nr = wf_tables[l->view].nr_columns;

	l->sort[l->view] = (l->sort[l->view] + nr + (size_t)step) % nr;
	l->cursor = 0;
}

static void change_interval(struct wf_live *l, double factor)
{
	l->interval_s = fmin(MAX_INTERVAL_S, fmax(MIN_INTERVAL_S, l->interval_s * factor));
	wf_page_say(l, false, "every %g s", l->interval_s);
}

static void type(struct wf_live *l, int key)
{
	size_t len = strlen(l->filter);

	if (key == WF_KEY_ESCAPE || key == 21 /* ^U */) {
		l->filter[0] = '\0';
		l->is_typing = key != WF_KEY_ESCAPE;
	} else if (key == '\r' || key == '\n') {
		l->is_typing = false;
	} else if (key == 127 || key == 8) {
		/* All of a character. */
		while (len && (l->filter[len - 1] & 0xc0) == 0x80)
			len--;
		l->filter[len ? len - 1 : 0] = '\0';
	} else if (key >= ' ' && key < 256 && len + 1 < sizeof(l->filter)) {
		l->filter[len] = (char)key;
		l->filter[len + 1] = '\0';
	}
	l->cursor = l->first = 0;
}

static bool move(struct wf_live *l, int key)
{
	size_t page = wf_page_rows(l), last = l->nr_rows ? l->nr_rows - 1 : 0;

	switch (key) {
	case WF_KEY_UP:
		l->cursor -= l->cursor > 0;
		return true;
	case WF_KEY_DOWN:
		l->cursor += l->cursor < last;
		return true;
	case WF_KEY_PAGE_UP:
		l->cursor -= l->cursor > page ? page : l->cursor;
		l->first -= l->first > page ? page : l->first;
		return true;
	case WF_KEY_PAGE_DOWN:
		l->cursor = l->cursor + page < last ? l->cursor + page : last;
		l->first += page;
		return true;
	case WF_KEY_HOME:
		l->cursor = 0;
		return true;
	case WF_KEY_END:
		l->cursor = last;
		return true;
	case WF_KEY_LEFT:
		l->shift -= l->shift > 0;
		return true;
	case WF_KEY_RIGHT:
		l->shift += l->shift + 2 < wf_tables[l->view].nr_columns;
		return true;
	default:
		return false;
	}
}

enum outcome {
	GO_ON,
	LOOK_NOW,
	END
};

static enum outcome press_enter(struct wf_live *l)
{
	int64_t tid;

	if (l->view == WF_LIVE_PROCESSES)
		return change_view(l, WF_LIVE_THREADS) ? LOOK_NOW : GO_ON;
	tid = chosen_tid(l);
	if (!tid || l->is_over)
		return GO_ON;
	return wf_pages_stack(l, tid) ? GO_ON : END;
}

static enum outcome press_view(struct wf_live *l, enum wf_live_view view)
{
	bool is_new = change_view(l, view);

	if (!is_new)
		arrange(l);
	return is_new ? LOOK_NOW : GO_ON;
}

static enum outcome press(struct wf_live *l, int key)
{
	switch (key) {
	case 'q':
	case WF_KEY_GONE:
		return END;
	case 't':
		return press_view(l, WF_LIVE_THREADS);
	case 'g':
		return press_view(l, WF_LIVE_GROUPS);
	case 'l':
		return press_view(l, WF_LIVE_LOCKS);
	case 'w':
		return press_view(l, WF_LIVE_WORKERS);
	case 'a':
		return press_view(l, WF_LIVE_PROCESSES);
	case '\r':
	case '\n':
		return press_enter(l);
	case '?':
	case 'h':
		return wf_pages_help(l) ? GO_ON : END;
	case 'D':
		if (l->view != WF_LIVE_PROCESSES && !l->is_over)
			wf_pages_dump(l);
		return GO_ON;
	case 'T':
		if (l->view != WF_LIVE_PROCESSES && !l->is_over)
			wf_pages_trace(l);
		return GO_ON;
	case 'p':
	case ' ':
		l->is_paused = !l->is_paused;
		return l->is_paused ? GO_ON : LOOK_NOW;
	case '+':
	case '-':
		change_interval(l, key == '+' ? 2 : 0.5);
		return GO_ON;
	case '/':
		l->is_typing = true;
		return GO_ON;
	case WF_KEY_ESCAPE:
		l->filter[0] = '\0';
		break;
	case '<':
	case '>':
		change_sort(l, key == '<' ? -1 : 1);
		break;
	case 'r':
		l->is_reverse[l->view] = !l->is_reverse[l->view];
		break;
	default:
		return GO_ON;
	}
	arrange(l);
	return GO_ON;
}

static enum outcome take_key(struct wf_live *l, int key)
{
	if (key == WF_KEY_NONE || key == WF_KEY_REDRAW || (key != WF_KEY_GONE && move(l, key)))
		return GO_ON;
	if (!l->is_typing || key == WF_KEY_GONE)
		return press(l, key);
	type(l, key);
	arrange(l);
	return GO_ON;
}

static int until(const struct wf_live *l, double next)
{
	double left = next - wf_look_now_s();

	if (l->is_paused || (l->is_over && l->view != WF_LIVE_PROCESSES))
		return -1;
	return left <= 0 ? 0 : left > 1e6 ? -1 : (int)(left * 1e3) + 1;
}

/* When states are to be counted, if that is before the next look. */
static double next_sample(const struct wf_live *l, double last, double next)
{
	double at = last + l->shares.every_s;

	return l->view != WF_LIVE_PROCESSES && l->shares.nr && !l->is_over && at < next ? at : next;
}

static void loop(struct wf_live *l)
{
	double next = 0, sampled = 0;
	enum outcome outcome = LOOK_NOW;

	do {
		double began = wf_look_now_s(), at;
		int key;

		if (outcome == LOOK_NOW || (began >= next && until(l, next) == 0)) {
			bool is_first = l->view != WF_LIVE_PROCESSES && l->now < 0;
			double cost;

			look(l);
			sampled = wf_look_now_s();
			cost = sampled - began;
			next = began + fmax(is_first ? fmin(FIRST_S, l->interval_s) : l->interval_s,
					    SHARE * cost);
		}
		wf_page_draw(l);
		at = next_sample(l, sampled, next);
		key = wf_term_key(&l->term, until(l, at));
		outcome = take_key(l, key);
		if (key == WF_KEY_NONE && at < next) {
			wf_shares_sample(&l->shares, &l->look);
			sampled = wf_look_now_s();
		}
	} while (outcome != END);
}

int wf_live_run(int pid, double interval_s, enum wf_rates_sort sort)
{
	struct wf_live *l = calloc(1, sizeof(*l));
	int ret = WF_EXIT_REFUSED;

	/* Each look takes and gives back the same pieces: they are not to go to the kernel and come back every time. */
	(void)mallopt(M_MMAP_THRESHOLD, KEPT_BYTES);
	(void)mallopt(M_TRIM_THRESHOLD, KEPT_BYTES);
	if (!l) {
		wf_cmd_error("top: out of memory");
		return ret;
	}
	l->now = -1;
	l->interval_s = interval_s;
	l->view = pid ? WF_LIVE_THREADS : WF_LIVE_PROCESSES;
	sort_by(l, sort);
	if (pid && !choose(l, pid)) {
		wf_cmd_error("top: %s", l->message);
	} else if (!wf_term_open(&l->term)) {
		wf_cmd_error("top: cannot use this terminal; see --once");
	} else {
		loop(l);
		wf_term_close(&l->term);
		ret = l->is_over ? EXIT_ENDED : 0;
	}
	forget_process(l);
	for (size_t i = 0; i < l->nr_processes; i++)
		forget_one(&l->processes[i]);
	free(l->processes);
	free(l->rows);
	free(l);
	return ret;
}
