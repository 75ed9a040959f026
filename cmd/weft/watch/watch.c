// SPDX-License-Identifier: Apache-2.0
/*
 * `weft watch`: options.
 *
 * Called by: main.c. Invariant: all that can be refused is refused here, before anything is started.
 */
#include "watch/watch.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "numbers.h"
#include "program.h"

#define KEEP_MAX 1000
#define PID_MAX (1 << 22)
#define TIME_MAX_S 86400.0
#define STALL_DEFAULT (10 * WF_WATCH_S)

static const char watch_help[] =
	"Usage: weft watch [OPTION]... [--] PROGRAM [ARGUMENT]...\n"
	"       weft watch --pid PID [--on exit,stall] [OPTION]... -- HOOK [ARGUMENT]...\n"
	"       weft watch --process NAME [--on exit,stall] [OPTION]... -- HOOK [ARGUMENT]...\n"
	"\n"
	"Runs PROGRAM under weft, starts it again when it dies, and keeps in a folder what it was doing when\n"
	"it died or stalled. It ends when PROGRAM ends with 0, and when it is told to by SIGTERM.\n"
	"\n"
	"  --max N/TIME       give up after N restarts within TIME, 0 to 1000 (default: 5/60s)\n"
	"  --delay MIN..MAX   wait before a restart: MIN first, twice as long each time up to MAX, and MIN\n"
	"                     again once the program has run for MAX, or 10 s (default: 100ms..30s)\n"
	"  --on-stall TIME=dump|restart\n"
	"                     when threads have waited for one another in a circle for TIME, or were ready\n"
	"                     and none got on: dump them, and maybe end and restart the program\n"
	"  --hook CMD         run CMD with sh at each event; WEFT_WATCH_EVENT, _WHAT, _NAME, _PID and _FOLDER\n"
	"                     say what it was\n"
	"  --dir DIR          keep the folders in DIR/weft-watch (default: the current directory)\n"
	"  --keep N           keep the last N folders of this name, 1 to 1000, and 256 MB (default: 10)\n"
	"  --grace TIME       between SIGTERM and SIGKILL (default: 10s)\n"
	"  --name NAME        what to call the program (default: its file name)\n"
	"  --pid PID          watch this process instead, until it ends; HOOK is run at its events\n"
	"  --process NAME     watch all processes instead whose program's file or command has this name, now and\n"
	"                     later, up to 900 at once, until SIGTERM; HOOK is run at the events of each\n"
	"  --on exit,stall    run HOOK at which of them (default: both)\n"
	"  --help             show this text\n"
	"\n"
	"A TIME is a number with ms, s, m or h behind it.\n"
	"\n"
	"Exit status: that of PROGRAM, 128 + N if signal N ended it; with --pid 0; with --process 128 + N if\n"
	"signal N told it to end; 125 if weft refuses or fails, 126 if PROGRAM cannot be executed, 127 if it\n"
	"is not found.\n";

static int refuse(const char *option, const char *wants, const char *got)
{
	wf_cmd_error("watch: %s takes %s, not '%s'", option, wants, got);
	return WF_EXIT_REFUSED;
}

/* The first `bytes` of text. */
static bool parse_time(const char *text, size_t bytes, int64_t *out)
{
	static const struct {
		const char *unit;
		double s;
	} units[] = { { "ms", 1e-3 }, { "s", 1 }, { "m", 60 }, { "h", 3600 } };
	char part[32], *end;
	double value;

	if (bytes >= sizeof(part))
		return false;
	memcpy(part, text, bytes);
	part[bytes] = '\0';
	if (*part < '0' || *part > '9' || strspn(part, "0123456789.") != strcspn(part, "msh"))
		return false;
	value = strtod(part, &end);
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(end, units[i].unit))
			continue;
		value *= units[i].s;
		if (value < 0.001 || value > TIME_MAX_S)
			return false;
		*out = (int64_t)(value * 1e9);
		return true;
	}
	return false;
}

static int take_max(struct wf_watch *w, const char *text)
{
	size_t digits = strcspn(text, "/");
	char number[16] = "";

	if (digits < sizeof(number))
		memcpy(number, text, digits);
	if (text[digits] == '/' && wf_numbers_parse(number, 0, WF_WATCH_RESTARTS_MAX, &w->max) &&
	    parse_time(text + digits + 1, strlen(text + digits + 1), &w->max_within_ns))
		return 0;
	return refuse("--max", "a number up to 1000 and a time, such as 5/60s", text);
}

static int take_delay(struct wf_watch *w, const char *text)
{
	const char *dots = strstr(text, "..");

	if (dots && parse_time(text, (size_t)(dots - text), &w->delay_ns) &&
	    parse_time(dots + 2, strlen(dots + 2), &w->delay_max_ns) &&
	    w->delay_ns <= w->delay_max_ns)
		return 0;
	return refuse("--delay", "two times, such as 100ms..30s", text);
}

static int take_stall(struct wf_watch *w, const char *text)
{
	size_t time = strcspn(text, "=");

	w->stall_restarts = strcmp(text + time, "=restart") == 0;
	if (parse_time(text, time, &w->stall_ns) && w->stall_ns >= 100 * WF_WATCH_MS &&
	    (w->stall_restarts || strcmp(text + time, "=dump") == 0))
		return 0;
	return refuse("--on-stall",
		      "a time from 100ms and what to do, such as 10s=dump or 10s=restart", text);
}

static int take_on(struct wf_watch *w, const char *text)
{
	w->tells_exit = !strcmp(text, "exit") || !strcmp(text, "exit,stall") ||
			!strcmp(text, "stall,exit");
	w->tells_stall = !strcmp(text, "stall") || strchr(text, ',');
	if (w->tells_exit || !strcmp(text, "stall"))
		return 0;
	return refuse("--on", "exit, stall, or exit,stall", text);
}

static int take_name(struct wf_watch *w, const char *text)
{
	static const char good[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";

	if (!*text || strlen(text) >= sizeof(w->name) || strspn(text, good) != strlen(text) ||
	    *text == '.')
		return refuse("--name", "up to 63 letters, digits, '.', '_' and '-'", text);
	snprintf(w->name, sizeof(w->name), "%s", text);
	return 0;
}

/* As the kernel knows programs: by the name of their file, which has no slash. */
static int take_process(struct wf_watch *w, const char *text)
{
	if (!*text || strlen(text) > NAME_MAX || strchr(text, '/'))
		return refuse("--process", "the name of a program's file, without folders", text);
	w->process = text;
	return 0;
}

/* The file name of the program, as far as it can be part of a folder's. */
static void make_name(struct wf_watch *w)
{
	const char *slash = strrchr(w->command[0], '/');

	if (w->process)
		snprintf(w->name, sizeof(w->name), "%s", w->process);
	else if (w->foreign)
		snprintf(w->name, sizeof(w->name), "pid");
	else
		snprintf(w->name, sizeof(w->name), "%s", slash ? slash + 1 : w->command[0]);
	for (char *c = w->name; *c; c++) {
		if (!strchr("._-", *c) && (*c < '0' || *c > '9') &&
		    ((*c | 32) < 'a' || (*c | 32) > 'z'))
			*c = '_';
	}
	if (*w->name == '.')
		*w->name = '_';
}

static int take_option(struct wf_watch *w, int option)
{
	switch (option) {
	case 'm':
		return take_max(w, optarg);
	case 'd':
		return take_delay(w, optarg);
	case 's':
		return take_stall(w, optarg);
	case 'k':
		w->hook = optarg;
		return *optarg ? 0 : refuse("--hook", "a command", optarg);
	case 'D':
		w->dir = optarg;
		return *optarg ? 0 : refuse("--dir", "a directory", optarg);
	case 'K':
		return wf_numbers_parse(optarg, 1, KEEP_MAX, &w->keep)
			       ? 0
			       : refuse("--keep", "a number from 1 to 1000", optarg);
	case 'g':
		return parse_time(optarg, strlen(optarg), &w->grace_ns)
			       ? 0
			       : refuse("--grace", "a time, such as 10s", optarg);
	case 'n':
		return take_name(w, optarg);
	case 'P':
		return take_process(w, optarg);
	case 'p':
		return wf_numbers_parse(optarg, 1, PID_MAX, &w->foreign)
			       ? 0
			       : refuse("--pid", "a process ID", optarg);
	default:
		return take_on(w, optarg);
	}
}

/* Which options do not go together. */
static int check(const struct wf_watch *w, bool has_on)
{
	bool is_foreign = w->process || w->foreign;
	const char *wrong = is_foreign ? w->hook             ? "--hook"
					 : w->stall_restarts ? "--on-stall TIME=restart"
							     : NULL
			    : has_on   ? "--on"
				       : NULL;

	if (w->process && w->foreign)
		wf_cmd_error("watch: --pid or --process, not both; see 'weft help watch'");
	else if (!w->command[0])
		wf_cmd_error(is_foreign ? "watch: which command is to be run? see 'weft help watch'"
					: "watch: which program? see 'weft help watch'");
	else if (wrong && is_foreign)
		wf_cmd_error("watch: %s is for a program that we start, and there is %s; see 'weft "
			     "help watch'",
			     wrong, w->process ? "--process" : "--pid");
	else if (wrong)
		wf_cmd_error("watch: %s is for --pid and --process; see 'weft help watch'", wrong);
	else
		return 0;
	return WF_EXIT_REFUSED;
}

static int parse_options(int argc, char **argv, struct wf_watch *w, bool *out_help)
{
	static const struct option options[] = {
		{ "max", required_argument, NULL, 'm' },
		{ "delay", required_argument, NULL, 'd' },
		{ "on-stall", required_argument, NULL, 's' },
		{ "hook", required_argument, NULL, 'k' },
		{ "dir", required_argument, NULL, 'D' },
		{ "keep", required_argument, NULL, 'K' },
		{ "grace", required_argument, NULL, 'g' },
		{ "name", required_argument, NULL, 'n' },
		{ "pid", required_argument, NULL, 'p' },
		{ "process", required_argument, NULL, 'P' },
		{ "on", required_argument, NULL, 'o' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	bool has_on = false;
	int option, ret;

	optind = 0;
	opterr = 0;
	while ((option = getopt_long(argc, argv, "+:", options, NULL)) != -1) {
		if (option == '?' || option == ':')
			return wf_cmd_bad_option(&wf_watch_cmd, option, argv);
		*out_help = option == 'h';
		if (*out_help)
			return 0;
		has_on |= option == 'o';
		ret = take_option(w, option);
		if (ret)
			return ret;
	}
	w->command = argv + optind;
	ret = check(w, has_on);
	if (w->process)
		w->foreign = -1;
	return ret;
}

static int find_program(const char *name)
{
	char path[PATH_MAX];
	int ret = wf_program_find(name, path);

	if (ret == 0)
		return 0;
	wf_cmd_error("cannot run %s: %s", name, strerror(-ret));
	return ret == -ENOENT || ret == -ENOTDIR ? WF_EXIT_NOT_FOUND : WF_EXIT_NOT_EXECUTABLE;
}

static int watch_main(int argc, char **argv)
{
	static struct wf_watch w = {
		.dir = ".",
		.tells_exit = true,
		.tells_stall = true,
		.max = 5,
		.max_within_ns = 60 * WF_WATCH_S,
		.delay_ns = 100 * WF_WATCH_MS,
		.delay_max_ns = 30 * WF_WATCH_S,
		.grace_ns = 10 * WF_WATCH_S,
		.keep = 10,
		.door = -1,
		.dying_folder = -1,
		.notify = -1,
	};
	bool is_help = false;
	int ret = parse_options(argc, argv, &w, &is_help);

	if (ret == 0 && is_help) {
		fputs(watch_help, stdout);
		return 0;
	}
	if (ret == 0)
		ret = find_program(w.command[0]);
	if (ret)
		return ret;
	if (!*w.name)
		make_name(&w);
	if (w.foreign && w.tells_stall && !w.stall_ns)
		w.stall_ns = STALL_DEFAULT;
	if (!wf_watch_folders_open(&w))
		return WF_EXIT_REFUSED;
	if (!wf_watch_begin(&w)) {
		wf_cmd_error("watch: cannot watch: %s", strerror(errno));
		return WF_EXIT_REFUSED;
	}
	if (!w.foreign) {
		wf_watch_door_open(&w);
		wf_watch_notify_open(&w);
	}
	return w.process   ? wf_watch_by_name(&w)
	       : w.foreign ? wf_watch_foreign(&w)
			   : wf_watch_supervise(&w);
}

const struct wf_cmd wf_watch_cmd = {
	.name = "watch",
	.summary = "restart a program that dies, and keep what it was doing",
	.help = watch_help,
	.main = watch_main,
};
