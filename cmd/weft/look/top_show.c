// SPDX-License-Identifier: Apache-2.0
/* Output of top; see top_show.h. */
#include "look/top_show.h"

#include <stdio.h>
#include <string.h>

#include "look/counts.h"
#include "numbers.h"
#include "target/wait.h"

#define MAX_WAITS 32 /* kinds of waiting */
#define WAIT_COLUMNS 44

static void show_waits(const struct wf_look *l, const struct wf_threads *s, FILE *out)
{
	size_t nr[MAX_WAITS] = { 0 };
	const char *between = ": ";

	for (size_t i = 0; i < s->nr_threads; i++) {
		const struct wf_dump_thread *d = &s->threads[i];

		if (d->wait_kind < MAX_WAITS && wf_waits_is_waiting(&l->layout, d))
			nr[d->wait_kind]++;
	}
	for (unsigned i = 0; i < MAX_WAITS; i++) {
		if (!nr[i])
			continue;
		fprintf(out, "%s%zu %s", between, nr[i], wf_layout_name(&l->layout, "wait", i));
		between = ", ";
	}
}

void wf_top_show_summary(struct wf_look *l, const struct wf_rates_look *r, const struct wf_rates *d,
			 FILE *out)
{
	const struct wf_threads *s = &r->threads;
	size_t nr_deadlocked = wf_look_deadlocked(l, s);
	char program[512], up[32], number[32];

	wf_text_clean(program, sizeof(program), l->target.program);
	fprintf(out, "%s %d  up %s  CPU %.0f %%  %zu workers  %u kernel threads  %zu threads",
		program, l->target.pid, wf_look_time(up, r->kernel.age_s), d->cpu_percent,
		s->nr_workers, r->kernel.nr_tasks, s->nr_alive);
	if (r->nr_parts > 1)
		fprintf(out, " (1 in %u read)", r->nr_parts);
	fprintf(out, "\n");
	fprintf(out, "threads  %zu run  %zu ready", d->nr_running, d->nr_ready);
	if (d->shares && d->shares->oldest_ready_ns > 0)
		fprintf(out, " (oldest %.3g ms)", (double)d->shares->oldest_ready_ns / 1e6);
	fprintf(out, "  %zu wait", d->nr_waiting);
	show_waits(l, s, out);
	if (nr_deadlocked)
		fprintf(out, "     !! deadlock: %zu threads", nr_deadlocked);
	fprintf(out, "\nper s   ");
	for (int i = 0; i < WF_NR_COUNTS; i++) {
		if (d->count_s[i] > 0)
			fprintf(out, " %s %s ", wf_numbers_text(number, d->count_s[i]),
				wf_counts[i].name);
	}
	fprintf(out, "\nworkers ");
	for (size_t i = 0; i < s->nr_workers; i++) {
		const struct wf_dump_worker *w = &s->workers[i];

		fprintf(out, " %u: ", w->index);
		if (w->cur_tid)
			fprintf(out, "%lld", (long long)w->cur_tid);
		else
			fprintf(out, "%s", w->rests ? "rests" : "idle");
		fprintf(out, ", queue %u ", w->nr_queued + w->nr_inbox);
	}
	fprintf(out, "\n");
	if (l->budget.spent)
		fprintf(out, "The look took too long (%s): something is missing.\n",
			l->budget.spent);
}

/* "  12   3   85" */
static void show_shares(const struct wf_shares *shares, size_t i)
{
	const struct wf_share *s = shares && i < shares->nr ? &shares->rows[i] : NULL;

	if (s)
		printf(" %4.0f %4.0f %4.0f", wf_shares_percent(s, s->run),
		       wf_shares_percent(s, s->ready), wf_shares_percent(s, s->wait));
	else
		printf(" %4s %4s %4s", "-", "-", "-");
}

static void show_thread(const struct wf_look *l, struct wf_waits *waits,
			const struct wf_rates_look *r, const struct wf_shares *shares, size_t i)
{
	const struct wf_dump_thread *d = &r->threads.threads[i];
	char name[64], text[512] = "", what[512], since[32] = "", number[32];
	struct wf_wait_text w;

	if (wf_waits_is_waiting(&l->layout, d)) {
		wf_waits_describe(waits, d, &w);
		snprintf(what, sizeof(what), "%s%s%s", strcmp(w.kind, "none") == 0 ? "" : w.kind,
			 w.what[0] ? " " : "", w.what);
		wf_text_clean(text, sizeof(text), what);
		if (w.since_s >= 0)
			wf_look_time(since, w.since_s);
	}
	printf("%8lld %-15s %-8s %6.1f", (long long)d->tid,
	       wf_text_clean(name, sizeof(name), d->name),
	       wf_layout_name(&l->layout, "state", d->state), r->cpu_percent[i]);
	show_shares(shares, i);
	printf(" %10s", wf_numbers_text(number, r->switches_s[i]));
	if (text[0])
		printf("  %-*s %8s", WAIT_COLUMNS, text, since);
	printf("\n");
}

void wf_top_show_text(struct wf_look *l, const struct wf_rates_look *r, const struct wf_rates *d,
		      size_t limit)
{
	const struct wf_threads *s = &r->threads;
	struct wf_waits *waits = wf_waits_new(&l->target, s, &l->layout, NULL);

	wf_top_show_summary(l, r, d, stdout);
	printf("%8s %-15s %-8s %6s %4s %4s %4s %10s  %-*s %8s\n", "TID", "NAME", "STATE", "CPU%",
	       "RUN", "RDY", "WAIT", "SWITCHES/S", WAIT_COLUMNS, "WAITS FOR", "SINCE");
	for (size_t i = 0; waits && i < s->nr_threads && i < limit; i++)
		show_thread(l, waits, r, d->shares, r->order[i]);
	if (s->nr_alive > limit)
		printf("... and %zu more\n", s->nr_alive - limit);
	wf_waits_free(waits);
}

static void json_threads(struct wf_text_json *j, const struct wf_look *l,
			 const struct wf_rates_look *r, const struct wf_shares *shares,
			 size_t limit)
{
	const struct wf_threads *s = &r->threads;
	struct wf_waits *waits = wf_waits_new(&l->target, s, &l->layout, NULL);

	wf_text_json_begin(j, "threads", '[');
	for (size_t n = 0; waits && n < s->nr_threads && n < limit; n++) {
		size_t i = r->order[n];
		const struct wf_dump_thread *d = &s->threads[i];
		const struct wf_share *share = shares && i < shares->nr ? &shares->rows[i] : NULL;

		wf_text_json_begin(j, NULL, '{');
		wf_text_json_number(j, "tid", d->tid);
		wf_text_json_string(j, "name", d->name);
		wf_text_json_string(j, "state", wf_layout_name(&l->layout, "state", d->state));
		wf_text_json_real(j, "cpu_percent", r->cpu_percent[i]);
		if (share) {
			wf_text_json_real(j, "run_percent", wf_shares_percent(share, share->run));
			wf_text_json_real(j, "ready_percent",
					  wf_shares_percent(share, share->ready));
			wf_text_json_real(j, "wait_percent", wf_shares_percent(share, share->wait));
		}
		wf_text_json_number(j, "run_ns", (long long)d->run_ns);
		wf_text_json_number(j, "switches", (long long)d->nr_switches);
		wf_text_json_real(j, "switches_per_s", r->switches_s[i]);
		if (wf_waits_is_waiting(&l->layout, d)) {
			struct wf_wait_text w;

			wf_waits_describe(waits, d, &w);
			wf_waits_json(&w, j);
		}
		wf_text_json_end(j, '}');
	}
	wf_text_json_end(j, ']');
	wf_waits_free(waits);
}

void wf_top_show_json(struct wf_text_json *j, struct wf_look *l, const struct wf_rates_look *r,
		      const struct wf_rates *d, size_t limit)
{
	const struct wf_threads *s = &r->threads;

	wf_text_json_begin(j, NULL, '{');
	wf_text_json_string(j, "program", l->target.program);
	wf_text_json_number(j, "pid", l->target.pid);
	wf_text_json_number(j, "uptime_ms", (long long)(r->kernel.age_s * 1e3));
	wf_text_json_number(j, "interval_ms", (long long)(d->interval_s * 1e3));
	wf_text_json_bool(j, "started", s->is_started);
	wf_text_json_real(j, "cpu_percent", d->cpu_percent);
	wf_text_json_number(j, "kernel_threads", r->kernel.nr_tasks);
	wf_text_json_number(j, "nr_threads", (long long)s->nr_alive);
	wf_text_json_number(j, "running", (long long)d->nr_running);
	wf_text_json_number(j, "ready", (long long)d->nr_ready);
	if (d->shares)
		wf_text_json_real(j, "oldest_ready_ms", (double)d->shares->oldest_ready_ns / 1e6);
	wf_text_json_number(j, "waiting", (long long)d->nr_waiting);
	wf_text_json_number(j, "deadlocked", (long long)wf_look_deadlocked(l, s));
	wf_text_json_begin(j, "per_second", '{');
	for (int i = 0; i < WF_NR_COUNTS; i++)
		wf_text_json_real(j, wf_counts[i].name, d->count_s[i]);
	wf_text_json_end(j, '}');
	wf_text_json_begin(j, "total", '{');
	for (int i = 0; i < WF_NR_COUNTS; i++)
		wf_text_json_number(j, wf_counts[i].name, (long long)s->count[i]);
	wf_text_json_end(j, '}');
	wf_text_json_begin(j, "workers", '[');
	for (size_t i = 0; i < s->nr_workers; i++) {
		const struct wf_dump_worker *w = &s->workers[i];

		wf_text_json_begin(j, NULL, '{');
		wf_text_json_number(j, "index", w->index);
		wf_text_json_bool(j, "rests", w->rests);
		if (w->cur_tid)
			wf_text_json_number(j, "thread", w->cur_tid);
		wf_text_json_number(j, "queued", w->nr_queued);
		wf_text_json_number(j, "inbox", w->nr_inbox);
		wf_text_json_end(j, '}');
	}
	wf_text_json_end(j, ']');
	if (limit)
		json_threads(j, l, r, d->shares, limit);
	if (l->budget.spent)
		wf_text_json_string(j, "incomplete", l->budget.spent);
	wf_text_json_end(j, '}');
}

void wf_top_show_head(void)
{
	printf("%8s %-20s %6s %8s %6s %6s %8s %8s %12s\n", "PID", "PROGRAM", "CPU%", "THREADS",
	       "RUN", "READY", "WAIT", "WORKERS", "SWITCHES/S");
}

void wf_top_show_row(struct wf_look *l, const struct wf_rates_look *r, const struct wf_rates *d)
{
	const char *base = strrchr(l->target.program, '/');
	char name[64], number[32];

	wf_text_clean(name, sizeof(name), base ? base + 1 : l->target.program);
	printf("%8d %-20.20s %6.1f %8zu %6zu %6zu %8zu %8zu %12s\n", l->target.pid, name,
	       d->cpu_percent, r->threads.nr_alive, d->nr_running, d->nr_ready, d->nr_waiting,
	       r->threads.nr_workers,
	       wf_numbers_text(number, d->count_s[WF_L_C_SWITCHES - WF_L_C_SWITCHES]));
}
