// SPDX-License-Identifier: Apache-2.0
/* Options of `weft run`, and the variables of the environment that stand for them. See run.h. */
#include "run.h"

#include <errno.h>
#include <getopt.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>

#include "cmd.h"
#include "sizes.h"

#define MAX_WORKERS 1024
#define MIN_SLICE_US 100
#define MAX_SLICE_US 1000000
#define MIN_STACK_BYTES                                                                            \
	(64ull << 10) /* less than that is none for the main thread of most programs */
#define MIN_WATCHDOG_MS 100
#define MAX_WATCHDOG_MS (24 * 3600 * 1000ull)
#define MAX_STACK_BYTES (1ull << 40)

const char wf_run_help[] =
	"Usage: weft run [OPTION]... [--] PROGRAM [ARGUMENT]...\n"
	"\n"
	"Runs PROGRAM with its threads as user-level threads. weft becomes the program: process ID,\n"
	"exit status, signals and standard streams are the program's own.\n"
	"\n"
	"  --workers N    run on N kernel threads, 1 to 1024 (default: as many as CPUs are allowed)\n"
	"  --stats        print counters on standard error when the program ends\n"
	"  --trace FILE   write the scheduler's events to FILE; %p in it is the pid\n"
	"  --record[=SIZE]\n"
	"                 keep the last events for weft trace, in a ring of SIZE for each kernel thread\n"
	"                 (default: 1M); with =calls or =SIZE,calls also the system calls\n"
	"  --seed N       schedule at random, from the seed N, to find races\n"
	"  --slice US     let a thread compute for US microseconds while others wait, 100 to 1000000\n"
	"                 (default: 10000)\n"
	"  --io-uring WHEN\n"
	"                 auto, always or never: whether waits for shared futexes, children and the\n"
	"                 disk go to a ring of io_uring instead of holding a kernel thread each\n"
	"                 (default: auto, when there are many)\n"
	"  --model MODEL  1:1, 1:N or M:N: a kernel thread for each thread (as without weft), one for all,\n"
	"                 or as many as there are workers (default: M:N); to compare them\n"
	"  --stack-size SIZE\n"
	"                 stacks of SIZE bytes, or of 64K or 16M, say, for the main thread and all\n"
	"                 threads that ask for no other (default: the limit of now, ulimit -s)\n"
	"  --watchdog TIME[=abort]\n"
	"                 tell on standard error when the program does not get on for TIME (10s, 500ms,\n"
	"                 2m), once a minute at most; =abort ends it by SIGABRT, for tests\n"
	"  --children=no  what PROGRAM executes runs without weft (default: yes, under weft as well)\n"
	"  --strict       end with 125 and the reason where the program would run without weft\n"
	"  --help         show this text\n"
	"  --version      show the version\n"
	"\n"
	"Environment:\n"
	"  WEFT=0         run the program as if weft were not there (also off, no, false)\n"
	"  WEFT_LIBRARY   the library to preload, if it is not at its usual place\n"
	"  WEFT_WORKERS, WEFT_STATS, WEFT_TRACE, WEFT_RECORD, WEFT_SEED, WEFT_SLICE, WEFT_IO_URING,\n"
	"  WEFT_CHILDREN, WEFT_MODEL, WEFT_STRICT, WEFT_WATCHDOG\n"
	"                 what the options set; an option wins\n"
	"  WEFT_OVERFLOW=always\n"
	"                 tell of a stack overflow even where the program handles it itself\n"
	"\n"
	"Exit status: that of PROGRAM; 125 if weft refuses or fails, 126 if PROGRAM cannot be\n"
	"executed, 127 if it is not found.\n";

/* The take_ functions read one option, or the variable that stands for it. They return 0 or the exit code. */

static int take_workers(struct wf_run_options *o, const char *name, const char *text)
{
	unsigned long long number;

	if (!wf_sizes_parse_number(text, &number) || number < 1 || number > MAX_WORKERS) {
		wf_cmd_error("run: %s takes a number from 1 to %d, not '%s'", name, MAX_WORKERS,
			     text);
		return WF_EXIT_REFUSED;
	}
	o->workers = (unsigned long)number;
	return 0;
}

static int take_seed(struct wf_run_options *o, const char *name, const char *text)
{
	if (!wf_sizes_parse_number(text, &o->seed)) {
		wf_cmd_error("run: %s takes a number of at most 64 bits, not '%s'", name, text);
		return WF_EXIT_REFUSED;
	}
	o->has_seed = true;
	return 0;
}

static int take_slice(struct wf_run_options *o, const char *name, const char *text)
{
	unsigned long long number;

	if (!wf_sizes_parse_number(text, &number) || number < MIN_SLICE_US ||
	    number > MAX_SLICE_US) {
		wf_cmd_error("run: %s takes a number from %d to %d, not '%s'", name, MIN_SLICE_US,
			     MAX_SLICE_US, text);
		return WF_EXIT_REFUSED;
	}
	o->slice_us = (unsigned long)number;
	return 0;
}

static int take_io_uring(struct wf_run_options *o, const char *name, const char *text)
{
	if (strcmp(text, "auto") && strcmp(text, "always") && strcmp(text, "never")) {
		wf_cmd_error("run: %s takes auto, always or never, not '%s'", name, text);
		return WF_EXIT_REFUSED;
	}
	o->io_uring = text;
	return 0;
}

static int take_children(struct wf_run_options *o, const char *name, const char *text)
{
	if (strcmp(text, "yes") && strcmp(text, "no")) {
		wf_cmd_error("run: %s takes yes or no, not '%s'", name, text);
		return WF_EXIT_REFUSED;
	}
	o->children = text;
	return 0;
}

static int take_model(struct wf_run_options *o, const char *name, const char *text)
{
	if (strcmp(text, "1:1") && strcmp(text, "1:N") && strcmp(text, "M:N")) {
		wf_cmd_error("run: %s takes 1:1, 1:N or M:N, not '%s'", name, text);
		return WF_EXIT_REFUSED;
	}
	o->model = text;
	return 0;
}

static int take_trace(struct wf_run_options *o, const char *name, const char *text)
{
	if (!*text) {
		wf_cmd_error("run: %s takes the name of a file, not ''", name);
		return WF_EXIT_REFUSED;
	}
	o->trace = text;
	return 0;
}

static int take_stack_size(struct wf_run_options *o, const char *name, const char *text)
{
	struct rlimit limit;

	if (!wf_sizes_parse(text, &o->stack_bytes) || o->stack_bytes < MIN_STACK_BYTES ||
	    o->stack_bytes > MAX_STACK_BYTES) {
		wf_cmd_error("run: %s takes a size from 64K to 1024G, not '%s'", name, text);
		return WF_EXIT_REFUSED;
	}
	if (getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_max != RLIM_INFINITY &&
	    o->stack_bytes > limit.rlim_max) {
		wf_cmd_error("run: %s %s is more than the hard limit allows, %llu bytes; raise it "
			     "(ulimit -Hs) or take less",
			     name, text, (unsigned long long)limit.rlim_max);
		return WF_EXIT_REFUSED;
	}
	return 0;
}

/* A whole number with its unit, as the library reads it, too. */
static int take_watchdog(struct wf_run_options *o, const char *name, const char *text)
{
	static const struct {
		const char *unit;
		unsigned long long ms;
	} units[] = { { "ms", 1 }, { "s", 1000 }, { "m", 60000 }, { "h", 3600000 } };
	size_t digits = strspn(text, "0123456789"), unit = strcspn(text, "=");
	unsigned long long ms = digits && digits < 9 ? strtoull(text, NULL, 10) : 0;

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (unit - digits != strlen(units[i].unit) ||
		    strncmp(text + digits, units[i].unit, unit - digits) ||
		    (text[unit] && strcmp(text + unit, "=abort")) ||
		    ms * units[i].ms < MIN_WATCHDOG_MS || ms * units[i].ms > MAX_WATCHDOG_MS)
			continue;
		o->watchdog = text;
		return 0;
	}
	wf_cmd_error("run: %s takes a time from 100ms to 24h, such as 10s or 10s=abort, not '%s'",
		     name, text);
	return WF_EXIT_REFUSED;
}

/* A size, "calls", or both with a comma between them. NULL: --record alone. */
static int take_record(struct wf_run_options *o, const char *name, const char *text)
{
	unsigned long long bytes;
	bool has_calls;

	o->record = text ? text : "1";
	if (wf_sizes_parse_record(text, &bytes, &has_calls))
		return 0;
	wf_cmd_error("run: %s takes a size from 4K to 1G, calls, or SIZE,calls, not '%s'", name,
		     text);
	return WF_EXIT_REFUSED;
}

static int take_overflow(struct wf_run_options *o, const char *name, const char *text)
{
	(void)o;
	if (strcmp(text, "always") && strcmp(text, "auto")) {
		wf_cmd_error("run: %s takes auto or always, not '%s'", name, text);
		return WF_EXIT_REFUSED;
	}
	return 0;
}

enum answer {
	NO,
	YES,
	NEITHER
};

static enum answer answer_of(const char *text)
{
	static const char *const no[] = { "0", "off", "no", "false" }, *const yes[] = { "1", "on",
											"yes",
											"true" };

	for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++) {
		if (strcasecmp(text, no[i]) == 0)
			return NO;
		if (strcasecmp(text, yes[i]) == 0)
			return YES;
	}
	return NEITHER;
}

int wf_run_take_answer(bool *out, const char *name, const char *text)
{
	enum answer answer = answer_of(text);

	if (answer == NEITHER) {
		wf_cmd_error("run: %s takes 1 or 0 (on, yes, true; off, no, false), not '%s'", name,
			     text);
		return WF_EXIT_REFUSED;
	}
	*out = answer == YES;
	return 0;
}

static int take_stats(struct wf_run_options *o, const char *name, const char *text)
{
	return wf_run_take_answer(&o->has_stats, name, text);
}

static int take_strict(struct wf_run_options *o, const char *name, const char *text)
{
	return wf_run_take_answer(&o->is_strict, name, text);
}

/* It may also say that the events are only kept for weft dump. */
static int take_trace_or_answer(struct wf_run_options *o, const char *name, const char *text)
{
	return answer_of(text) == NEITHER ? take_trace(o, name, text) : 0;
}

static int take_record_or_answer(struct wf_run_options *o, const char *name, const char *text)
{
	return answer_of(text) == NEITHER ? take_record(o, name, text) : 0;
}

/* Returns 0, or the exit code (also for --help, with *out_done set). */
int wf_run_parse_options(int argc, char **argv, struct wf_run_options *out, bool *out_done)
{
	static const struct option options[] = {
		{ "workers", required_argument, NULL, 'w' },
		{ "stats", no_argument, NULL, 's' },
		{ "trace", required_argument, NULL, 't' },
		{ "record", optional_argument, NULL, 'r' },
		{ "seed", required_argument, NULL, 'S' },
		{ "slice", required_argument, NULL, 'q' },
		{ "io-uring", required_argument, NULL, 'u' },
		{ "stack-size", required_argument, NULL, 'k' },
		{ "watchdog", required_argument, NULL, 'W' },
		{ "children", required_argument, NULL, 'c' },
		{ "model", required_argument, NULL, 'm' },
		{ "strict", no_argument, NULL, 'T' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ 0 },
	};
	int c, ret = 0;

	optind = 0; /* main() has parsed options of its own */
	opterr = 0;
	while (!ret && (c = getopt_long(argc, argv, "+:", options, NULL)) != -1) {
		switch (c) {
		case 'w':
			ret = take_workers(out, "--workers", optarg);
			break;
		case 's':
			out->has_stats = true;
			break;
		case 't':
			ret = take_trace(out, "--trace", optarg);
			break;
		case 'r':
			ret = take_record(out, "--record", optarg);
			break;
		case 'S':
			ret = take_seed(out, "--seed", optarg);
			break;
		case 'q':
			ret = take_slice(out, "--slice", optarg);
			break;
		case 'u':
			ret = take_io_uring(out, "--io-uring", optarg);
			break;
		case 'k':
			ret = take_stack_size(out, "--stack-size", optarg);
			break;
		case 'W':
			ret = take_watchdog(out, "--watchdog", optarg);
			break;
		case 'c':
			ret = take_children(out, "--children", optarg);
			break;
		case 'm':
			ret = take_model(out, "--model", optarg);
			break;
		case 'T':
			out->is_strict = true;
			break;
		case 'h':
			fputs(wf_run_help, stdout);
			*out_done = true;
			return 0;
		case 'V':
			wf_cmd_version();
			*out_done = true;
			return 0;
		default:
			return wf_cmd_bad_option(&wf_run_cmd, c, argv);
		}
	}
	if (!ret && optind == argc) {
		wf_cmd_error("run: which program? see 'weft help run'");
		return WF_EXIT_REFUSED;
	}
	if (!ret && out->model && !strcmp(out->model, "1:N") && out->workers > 1) {
		wf_cmd_error("run: --model 1:N has one worker, and --workers wants %lu",
			     out->workers);
		return WF_EXIT_REFUSED;
	}
	return ret;
}

int wf_run_parse_environment(struct wf_run_options *out)
{
	const struct {
		const char *name;
		int (*take)(struct wf_run_options *o, const char *name, const char *text);
		bool is_set;
	} variables[] = {
		{ "WEFT_WORKERS", take_workers, out->workers != 0 },
		{ "WEFT_SEED", take_seed, out->has_seed },
		{ "WEFT_SLICE", take_slice, out->slice_us != 0 },
		{ "WEFT_IO_URING", take_io_uring, out->io_uring != NULL },
		{ "WEFT_CHILDREN", take_children, out->children != NULL },
		{ "WEFT_MODEL", take_model, out->model != NULL },
		{ "WEFT_OVERFLOW", take_overflow, false },
		{ "WEFT_WATCHDOG", take_watchdog, out->watchdog != NULL },
		{ "WEFT_STATS", take_stats, out->has_stats },
		{ "WEFT_STRICT", take_strict, out->is_strict },
		{ "WEFT_TRACE", take_trace_or_answer, out->trace != NULL },
		{ "WEFT_RECORD", take_record_or_answer, out->record != NULL },
	};

	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
		const char *text = getenv(variables[i].name);
		int ret = 0;

		if (text && *text && !variables[i].is_set)
			ret = variables[i].take(out, variables[i].name, text);
		if (ret)
			return ret;
	}
	return 0;
}
