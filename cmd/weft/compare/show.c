// SPDX-License-Identifier: Apache-2.0
/* The output of `weft compare`: the table, the verdict in one sentence, JSON. Called by: compare.c. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "compare/compare.h"
#include "text.h"

#define TABLE_COLUMNS 78

/* Order as in enum wf_compare_metric. */
static const struct metric {
	const char *label, *json;
	enum {
		SECONDS,
		COUNT,
		BYTES,
		ANY
	} kind;
} metrics[WF_COMPARE_NR_METRICS] = {
	{ "wall time", "wall_s", SECONDS },
	{ "CPU time", "cpu_s", SECONDS },
	{ "context switches", "switches", COUNT },
	{ "kernel threads, at most", "kernel_threads", COUNT },
	{ "memory", "memory_bytes", BYTES },
	{ "score", "score", ANY },
};

static double median(const struct wf_compare *c, int side, int metric)
{
	const struct wf_compare_side *s = &c->sides[side];

	return wf_numbers_median(s->values[metric], (size_t)s->nr_rounds);
}

static double spread(const struct wf_compare *c, int side, int metric)
{
	const struct wf_compare_side *s = &c->sides[side];

	return wf_numbers_spread(s->values[metric], (size_t)s->nr_rounds);
}

static double ratio(const struct wf_compare *c, int metric)
{
	return median(c, WF_COMPARE_WEFT, metric) / median(c, WF_COMPARE_NATIVE, metric);
}

/* The rounds of one side differ by more than the two sides do. */
static bool is_undecided(const struct wf_compare *c, int metric)
{
	double widest = fmax(spread(c, WF_COMPARE_NATIVE, metric),
			     spread(c, WF_COMPARE_WEFT, metric));

	return c->nr_rounds < 3 || fabs(ratio(c, metric) - 1) <= widest;
}

static bool has_same_status(const struct wf_compare *c)
{
	const struct wf_compare_side *n = &c->sides[WF_COMPARE_NATIVE];
	const struct wf_compare_side *w = &c->sides[WF_COMPARE_WEFT];

	return n->status == w->status && !n->nr_other_status && !w->nr_other_status;
}

bool wf_compare_is_alike(const struct wf_compare *c)
{
	/* Output that is another one natively each time says nothing. */
	bool is_other_output = c->sides[WF_COMPARE_WEFT].nr_other_output &&
			       !c->sides[WF_COMPARE_NATIVE].nr_other_output;

	return has_same_status(c) && !is_other_output;
}

/* A count has no fraction, whatever the median of two rounds is. */
static const char *count_text(char out[32], double value)
{
	if (!(value < 99.5))
		return wf_numbers_text(out, value);
	snprintf(out, 32, "%.0f", value);
	return out;
}

/* In the unit that suits the native one. */
static void put_value(char out[40], int metric, double value, double native)
{
	char number[32];
	const char *unit = "";

	switch (metrics[metric].kind) {
	case SECONDS:
		unit = native >= 1 ? " s " : native >= 1e-3 ? " ms" : " us";
		value *= native >= 1 ? 1 : native >= 1e-3 ? 1e3 : 1e6;
		break;
	case BYTES:
		unit = " MiB";
		value /= 1 << 20;
		break;
	default:
		break;
	}
	snprintf(out, 40, "%s%s",
		 metrics[metric].kind == COUNT ? count_text(number, value)
					       : wf_numbers_text(number, value),
		 unit);
}

/* Where the table has no room each row's name has a line of its own, down to 40 columns. */
static bool is_narrow(void)
{
	return wf_numbers_columns(STDOUT_FILENO) < TABLE_COLUMNS;
}

static void print_row(const struct wf_compare *c, int metric)
{
	double n = median(c, WF_COMPARE_NATIVE, metric), w = median(c, WF_COMPARE_WEFT, metric);
	char native[40], weft[40], by[32] = "-";

	if (metric == WF_COMPARE_SCORE && !c->score)
		return;
	put_value(native, metric, n, n);
	put_value(weft, metric, w, n);
	if (n > 0)
		snprintf(by, sizeof(by), "%.2fx", w / n);
	printf(is_narrow() ? "%s\n%9s %3.0f %% %9s %3.0f %% %7s\n"
			   : "%-24s %14s %4.0f %% %14s %4.0f %% %9s\n",
	       metric == WF_COMPARE_WALL && c->load ? "the load took" : metrics[metric].label,
	       native, 100 * spread(c, WF_COMPARE_NATIVE, metric), weft,
	       100 * spread(c, WF_COMPARE_WEFT, metric), by);
}

static void put_status(char out[40], int status)
{
	if (WIFEXITED(status))
		snprintf(out, 40, "exit status %d", WEXITSTATUS(status));
	else
		snprintf(out, 40, "SIG%.20s", sigabbrev_np(WTERMSIG(status)) ?: "?");
}

/* "0.61 of the CPU time" and the like, or that it cannot be told. */
static void put_share(char *out, size_t bytes, const struct wf_compare *c, int metric,
		      const char *of)
{
	if (is_undecided(c, metric))
		snprintf(out, bytes, "as much %s as far as can be told", of);
	else
		snprintf(out, bytes, "%.2f of the %s", ratio(c, metric), of);
}

static void print_verdict(const struct wf_compare *c)
{
	double native = median(c, WF_COMPARE_NATIVE, WF_COMPARE_KTHREADS);
	double weft = median(c, WF_COMPARE_WEFT, WF_COMPARE_KTHREADS);
	char cpu[80], wall[80], threads[2][32];

	if (c->fallback[0]) {
		printf("weft ran it on plain NPTL, so nothing was compared: %s\n", c->fallback);
		return;
	}
	if (native <= 1 && weft <= 1) {
		printf("The program was never seen with more than one thread: weft has nothing to do "
		       "there.\n");
		return;
	}
	put_share(cpu, sizeof(cpu), c, WF_COMPARE_CPU, "CPU time");
	put_share(wall, sizeof(wall), c, WF_COMPARE_WALL, c->load ? "load's time" : "wall time");
	printf("%sweft needs %s and %s; %s kernel thread%s instead of %s.%s\n",
	       wf_text_tone(WF_TEXT_STRONG), cpu, wall, count_text(threads[0], weft),
	       weft == 1 ? "" : "s", count_text(threads[1], native), wf_text_plain());
}

/* Reasons why the figures say less than they seem to. */
static void print_doubts(const struct wf_compare *c)
{
	static const int judged[] = { WF_COMPARE_CPU, WF_COMPARE_WALL };

	if (c->fallback[0])
		return;
	if (c->nr_rounds < 3) {
		printf("warning: %d round%s cannot tell a difference from chance; --rounds 5 may.\n",
		       c->nr_rounds, c->nr_rounds == 1 ? "" : "s");
		return;
	}
	for (size_t i = 0; i < sizeof(judged) / sizeof(judged[0]); i++) {
		double widest = fmax(spread(c, WF_COMPARE_NATIVE, judged[i]),
				     spread(c, WF_COMPARE_WEFT, judged[i]));

		if (is_undecided(c, judged[i]) && widest > 0.02)
			printf("warning: %s: the rounds of one side differ by %.0f %%, the two sides "
			       "by %.0f %%; more --rounds, or a quieter machine.\n",
			       metrics[judged[i]].label, 100 * widest,
			       100 * fabs(ratio(c, judged[i]) - 1));
	}
}

static void print_behaviour(const struct wf_compare *c)
{
	const struct wf_compare_side *n = &c->sides[WF_COMPARE_NATIVE];
	const struct wf_compare_side *w = &c->sides[WF_COMPARE_WEFT];
	char native[40], weft[40];

	put_status(native, n->status);
	put_status(weft, w->status);
	if (has_same_status(c))
		printf("%s on both sides", native);
	else
		printf("%sDIFFERENT ENDS%s: natively %s (%d of %d rounds otherwise), under weft %s (%d)",
		       wf_text_tone(WF_TEXT_BAD), wf_text_plain(), native, n->nr_other_status,
		       n->nr_rounds, weft, w->nr_other_status);
	if (c->load)
		printf(".\n");
	else if (n->nr_other_output)
		printf("; the output differs from run to run, also natively.\n");
	else if (w->nr_other_output)
		printf("; %sDIFFERENT OUTPUT%s in %d of %d rounds under weft.\n",
		       wf_text_tone(WF_TEXT_BAD), wf_text_plain(), w->nr_other_output,
		       w->nr_rounds);
	else
		printf("; the same output.\n");
	if (n->nr_killed || w->nr_killed)
		printf("warning: the server did not end 10 s after SIGTERM: natively %d, under weft "
		       "%d of %d rounds.\n",
		       n->nr_killed, w->nr_killed, c->nr_rounds);
}

void wf_compare_show(const struct wf_compare *c)
{
	printf("%s; medians of %d round%s in turn; %%: the width of their middle half\n\n",
	       c->machine, c->nr_rounds, c->nr_rounds == 1 ? "" : "s");
	printf(is_narrow() ? "%s%9s %5s %9s %5s %7s\n" : "%-24s %14s %6s %14s %6s %9s\n", "",
	       "native", "", "weft", "", "");
	for (int metric = 0; metric < WF_COMPARE_NR_METRICS; metric++)
		print_row(c, metric);
	putchar('\n');
	print_verdict(c);
	print_behaviour(c);
	print_doubts(c);
}

static void json_side(struct wf_text_json *j, const struct wf_compare *c, int side,
		      const char *name)
{
	const struct wf_compare_side *s = &c->sides[side];
	char status[40];

	wf_text_json_begin(j, name, '{');
	put_status(status, s->status);
	wf_text_json_string(j, "end", status);
	wf_text_json_number(j, "rounds_with_another_end", s->nr_other_status);
	if (!c->load)
		wf_text_json_number(j, "rounds_with_another_output", s->nr_other_output);
	wf_text_json_begin(j, "median", '{');
	for (int m = 0; m < WF_COMPARE_NR_METRICS; m++)
		wf_text_json_real(j, metrics[m].json, median(c, side, m));
	wf_text_json_end(j, '}');
	wf_text_json_begin(j, "rounds", '[');
	for (int i = 0; i < s->nr_rounds; i++) {
		wf_text_json_begin(j, NULL, '{');
		for (int m = 0; m < WF_COMPARE_NR_METRICS; m++)
			wf_text_json_real(j, metrics[m].json, s->values[m][i]);
		wf_text_json_end(j, '}');
	}
	wf_text_json_end(j, ']');
	wf_text_json_end(j, '}');
}

void wf_compare_show_json(const struct wf_compare *c)
{
	struct wf_text_json j = { .out = stdout };

	wf_text_json_begin(&j, NULL, '{');
	wf_text_json_string(&j, "machine", c->machine);
	wf_text_json_begin(&j, "command", '[');
	for (char **arg = c->command; *arg; arg++)
		wf_text_json_string(&j, NULL, *arg);
	wf_text_json_end(&j, ']');
	if (c->load)
		wf_text_json_string(&j, "load", c->load);
	if (c->fallback[0])
		wf_text_json_string(&j, "on_nptl_because", c->fallback);
	wf_text_json_bool(&j, "is_alike", wf_compare_is_alike(c));
	wf_text_json_begin(&j, "ratio", '{');
	for (int m = 0; m < WF_COMPARE_NR_METRICS; m++)
		wf_text_json_real(&j, metrics[m].json, ratio(c, m));
	wf_text_json_end(&j, '}');
	wf_text_json_begin(&j, "undecided", '[');
	for (int m = 0; m < WF_COMPARE_NR_METRICS; m++) {
		if (is_undecided(c, m))
			wf_text_json_string(&j, NULL, metrics[m].json);
	}
	wf_text_json_end(&j, ']');
	json_side(&j, c, WF_COMPARE_NATIVE, "native");
	json_side(&j, c, WF_COMPARE_WEFT, "weft");
	wf_text_json_end(&j, '}');
}
