// SPDX-License-Identifier: Apache-2.0
/*
 * `weft top`: what the threads of a process do, or the processes under weft, by looks at intervals.
 *
 * Called by: main.c. Invariant: nobody is stopped; a process that ends between two looks is no error among many.
 */
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cmd.h"
#include "look/live.h"
#include "look/top_show.h"
#include "numbers.h"
#include "target/find.h"

#define EXIT_NONE 1
#define EXIT_ENDED 3
#define MAX_THREADS 100000
#define MAX_ROUNDS 1000000
#define MAX_INTERVAL_S 3600
#define SHARE 5 /* of a CPU, one part at most is for looking */
#define LIMIT_TEXT 20
#define LIMIT_JSON 1000

static const char top_help[] =
	"Usage: weft top [OPTION]... [PID|NAME]\n"
	"\n"
	"Shows what the threads of a process under weft do: CPU time, switches, what each waits for and\n"
	"since when; without a process, all processes under weft. Nobody is stopped: the process is\n"
	"looked at twice, and what happened in between is shown.\n"
	"\n"
	"On a terminal the page stays, is renewed, and takes keys; ? lists them. Elsewhere, and with\n"
	"--once, -n or --json, text is printed.\n"
	"\n"
	"  --once        print it once\n"
	"  -n N          print it N times\n"
	"  -d S          look every S seconds (default: 1; parts of seconds are allowed)\n"
	"  --sort KEY    threads by cpu (default), switches, wait or tid\n"
	"  --limit N     show at most N threads (default: 20, all on a page; with --json\n"
	"                1,000)\n"
	"  --json        print an object for each time, each in one line\n"
	"  --help        show this text\n"
	"\n"
	"Exit status: 0; 1 if no process runs under weft; 3 if the process has ended; 125 if there is no\n"
	"such process, it is not under weft, or may not be read.\n";

struct top_options {
	double interval_s;
	int rounds;
	int limit; /* 0: default */
	int pid;   /* 0: all */
	enum wf_rates_sort sort;
	bool is_json, is_help, is_page;
};

static bool parse_interval(const char *text, double *out)
{
	char *end;

	*out = strtod(text, &end);
	return strspn(text, ".0123456789") == strlen(text) && end > text && !*end && *out >= 0.01 &&
	       *out <= MAX_INTERVAL_S;
}

static bool parse_sort(const char *text, enum wf_rates_sort *out)
{
	static const char *const names[] = { "cpu", "switches", "wait", "tid" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		*out = (enum wf_rates_sort)i;
		if (strcmp(names[i], text) == 0)
			return true;
	}
	return false;
}

/* NULL, or what the option takes instead. */
static const char *take_option(int c, struct top_options *o)
{
	switch (c) {
	case 'o':
		o->is_page = false;
		o->rounds = 1;
		return NULL;
	case 'n':
		o->is_page = false;
		return wf_numbers_parse(optarg, 1, MAX_ROUNDS, &o->rounds)
			       ? NULL
			       : "-n takes a number from 1 to 1,000,000";
	case 'd':
		return parse_interval(optarg, &o->interval_s)
			       ? NULL
			       : "-d takes seconds from 0.01 to 3600";
	case 'l':
		return wf_numbers_parse(optarg, 1, MAX_THREADS, &o->limit)
			       ? NULL
			       : "--limit takes a number from 1 to 100,000";
	case 's':
		return parse_sort(optarg, &o->sort) ? NULL
						    : "--sort takes cpu, switches, wait or tid";
	case 'j':
		o->is_json = true;
		return NULL;
	default:
		o->is_help = true;
		return NULL;
	}
}

static int parse_options(int argc, char **argv, struct top_options *o)
{
	static const struct option options[] = {
		{ "once", no_argument, NULL, 'o' },        { "sort", required_argument, NULL, 's' },
		{ "limit", required_argument, NULL, 'l' }, { "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },        { 0 },
	};
	char error[512];
	int c;

	optind = 0; /* main() has parsed options of its own */
	opterr = 0;
	while (!o->is_help && (c = getopt_long(argc, argv, ":n:d:", options, NULL)) != -1) {
		const char *wrong;

		if (c == '?' || c == ':')
			return wf_cmd_bad_option(&wf_top_cmd, c, argv);
		wrong = take_option(c, o);
		if (!wrong)
			continue;
		wf_cmd_error("top: %s, not '%s'", wrong, optarg);
		return WF_EXIT_REFUSED;
	}
	if (o->is_help || optind == argc)
		return 0;
	if (argc - optind > 1) {
		wf_cmd_error("top: one process at a time; see 'weft help top'");
		return WF_EXIT_REFUSED;
	}
	o->pid = wf_find_pid(argv[optind], error, sizeof(error));
	if (!o->pid)
		wf_cmd_error("top: %s", error);
	return o->pid ? 0 : WF_EXIT_REFUSED;
}

static void pause_for(double seconds)
{
	struct timespec ts = { .tv_sec = (time_t)seconds,
			       .tv_nsec = (long)((seconds - floor(seconds)) * 1e9) };

	while (nanosleep(&ts, &ts) < 0 && errno == EINTR)
		;
}

/* A reader at the other end of a pipe gets each as it is; false: he is gone. */
static bool is_shown(void)
{
	return fflush(stdout) == 0;
}

static size_t limit_of(const struct top_options *o)
{
	if (o->limit)
		return (size_t)o->limit;
	return o->is_json ? LIMIT_JSON : LIMIT_TEXT;
}

static double cpu_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static int watch_one(const struct top_options *o)
{
	struct wf_rates_look looks[2] = { { .at_s = 0 } };
	struct wf_shares shares = { 0 };
	double began_s, pause_s = 0;
	struct wf_rates rates;
	struct wf_look l;
	int ret = WF_EXIT_REFUSED;

	if (!wf_look_open(&l, o->pid))
		goto out;
	ret = EXIT_ENDED;
	if (!wf_rates_look(&l, &looks[0], MAX_THREADS, NULL))
		goto out;
	wf_shares_look(&shares, &l.layout, &looks[0].threads, looks[0].cost_s);
	for (int i = 1; i <= o->rounds; i++) {
		struct wf_rates_look *now = &looks[i % 2], *before = &looks[(i + 1) % 2];
		struct wf_text_json j = { .out = stdout, .is_line = true };

		wf_shares_pause(&shares, &l, fmax(o->interval_s, pause_s));
		began_s = cpu_s();
		wf_rates_done(now);
		if (!wf_rates_look(&l, now, MAX_THREADS, NULL))
			goto out;
		wf_rates_between(&l, before, now, o->sort, &rates);
		wf_shares_look(&shares, &l.layout, &now->threads, now->cost_s);
		rates.shares = &shares;
		if (o->is_json)
			wf_top_show_json(&j, &l, now, &rates, limit_of(o));
		else
			wf_top_show_text(&l, now, &rates, limit_of(o));
		if (i < o->rounds && !o->is_json)
			printf("\n");
		if (!is_shown())
			break;
		pause_s = SHARE * (cpu_s() - began_s);
	}
	ret = 0;
out:
	if (ret)
		wf_cmd_error("top: %s", l.target.error);
	wf_rates_done(&looks[0]);
	wf_rates_done(&looks[1]);
	wf_shares_done(&shares);
	wf_look_done(&l);
	return ret;
}

struct watched {
	struct wf_look look;
	struct wf_rates_look first, second;
	bool is_open;
};

/* Those that are there now: open, and looked at once. Returns how many. */
static size_t look_at_all(struct watched *all, const struct wf_find *f)
{
	size_t nr = 0;

	for (size_t i = 0; i < f->nr_processes; i++) {
		struct watched *w = &all[i];

		w->is_open = wf_look_open(&w->look, f->processes[i].pid) &&
			     wf_rates_look(&w->look, &w->first, MAX_THREADS, NULL);
		nr += w->is_open;
	}
	return nr;
}

static void show_all(struct watched *all, size_t nr, const struct top_options *o)
{
	struct wf_text_json j = { .out = stdout, .is_line = true };
	struct wf_rates rates;

	if (o->is_json) {
		wf_text_json_begin(&j, NULL, '{');
		wf_text_json_begin(&j, "processes", '[');
	} else {
		wf_top_show_head();
	}
	for (size_t i = 0; i < nr; i++) {
		struct watched *w = &all[i];

		if (!w->is_open || !wf_rates_look(&w->look, &w->second, MAX_THREADS, NULL))
			continue;
		wf_rates_between(&w->look, &w->first, &w->second, o->sort, &rates);
		if (o->is_json)
			wf_top_show_json(&j, &w->look, &w->second, &rates, 0);
		else
			wf_top_show_row(&w->look, &w->second, &rates);
	}
	if (o->is_json) {
		wf_text_json_end(&j, ']');
		wf_text_json_end(&j, '}');
	}
}

/* One round; others may begin and end between two. */
static int watch_all_once(const struct top_options *o)
{
	struct wf_find f;
	bool is_ok = wf_find_all(&f);
	struct watched *all = is_ok ? calloc(f.nr_processes + 1, sizeof(*all)) : NULL;
	int ret = WF_EXIT_REFUSED;

	if (!all) {
		wf_cmd_error("top: cannot list the processes: /proc is not there, or no memory");
	} else if (!look_at_all(all, &f)) {
		wf_cmd_error("top: no process runs under weft that may be looked at");
		ret = EXIT_NONE;
	} else {
		pause_for(o->interval_s);
		show_all(all, f.nr_processes, o);
		ret = 0;
	}
	for (size_t i = 0; all && i < f.nr_processes; i++) {
		wf_rates_done(&all[i].first);
		wf_rates_done(&all[i].second);
		wf_look_done(&all[i].look);
	}
	free(all);
	wf_find_done(&f);
	return ret;
}

static int watch_all(const struct top_options *o)
{
	for (int i = 1; i <= o->rounds; i++) {
		int ret = watch_all_once(o);

		if (ret)
			return ret;
		if (i < o->rounds && !o->is_json)
			printf("\n");
		if (!is_shown())
			break;
	}
	return 0;
}

static int top_main(int argc, char **argv)
{
	struct top_options o = { .interval_s = 1, .rounds = 1, .is_page = true };
	int ret = parse_options(argc, argv, &o);

	if (ret)
		return ret;
	if (o.is_help) {
		fputs(top_help, stdout);
		return 0;
	}
	if (o.is_page && !o.is_json && wf_term_is_there())
		return wf_live_run(o.pid, o.interval_s, o.sort);
	return o.pid ? watch_one(&o) : watch_all(&o);
}

const struct wf_cmd wf_top_cmd = {
	.name = "top",
	.summary = "show what the threads of a program do",
	.help = top_help,
	.main = top_main,
};
