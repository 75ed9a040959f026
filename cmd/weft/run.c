// SPDX-License-Identifier: Apache-2.0
/*
 * `weft run`: prepares the environment for the preloaded library and becomes the program.
 *
 * Called by: main.c. Invariant: the command execs and leaves no process between the caller and the program,
 * so pid, exit status, signals and stdio are the program's own. With WEFT=0 nothing is changed at all, and nothing is where
 * no program of the caller's could run under weft.
 */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <unistd.h>

#include "binary.h"
#include "cmd.h"
#include "library.h"
#include "preflight.h"
#include "program.h"
#include "tracefile.h"

#define MAX_WORKERS 1024
#define MIN_SLICE_US 100
#define MAX_SLICE_US 1000000
#define MIN_STACK_BYTES                                                                            \
	(64ull << 10) /* less than that is none for the main thread of most programs */
#define MAX_STACK_BYTES (1ull << 40)

/*
 * glibc keeps 40 MB of dead stacks, five of the default size, and maps and unmaps the others: 17 us for a
 * thread that costs 0.4 us with its stack kept. 128 GiB is address
 * space for 16,384 of them; a thread that lived for long gives its pages back.
 */
#define STACK_TUNABLE "glibc.pthread.stack_cache_size"
#define STACK_CACHE_BYTES "137438953472"

/*
 * The runtime of AddressSanitizer ends a program in which another library is loaded before it. We define none
 * of the functions that it replaces. Its leak checker, and the one that programs have without it, looks for
 * threads among the kernel's, finds only main and calls a leak what the stacks of the others hold. Programs that
 * the program starts may have it, too.
 */
#define ASAN_ORDER "verify_asan_link_order"
#define LEAKS "detect_leaks"

static const char run_help[] =
	"Usage: weft run [OPTION]... [--] PROGRAM [ARGUMENT]...\n"
	"\n"
	"Runs PROGRAM with its threads as user-level threads. weft becomes the program: process ID,\n"
	"exit status, signals and standard streams are the program's own.\n"
	"\n"
	"  --workers N    run on N kernel threads, 1 to 1024 (default: as many as CPUs are allowed)\n"
	"  --stats        print counters on standard error when the program ends\n"
	"  --trace FILE   write the scheduler's events to FILE; %p in it is the pid\n"
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
	"  --children=no  what PROGRAM executes runs without weft (default: yes, under weft as well)\n"
	"  --strict       end with 125 and the reason where the program would run without weft\n"
	"  --help         show this text\n"
	"  --version      show the version\n"
	"\n"
	"Environment:\n"
	"  WEFT=0         run the program as if weft were not there (also off, no, false)\n"
	"  WEFT_LIBRARY   the library to preload, if it is not at its usual place\n"
	"  WEFT_WORKERS, WEFT_STATS, WEFT_TRACE, WEFT_SEED, WEFT_SLICE, WEFT_IO_URING, WEFT_CHILDREN,\n"
	"  WEFT_MODEL, WEFT_STRICT\n"
	"                 what the options set; an option wins\n"
	"  WEFT_OVERFLOW=always\n"
	"                 tell of a stack overflow even where the program handles it itself\n"
	"\n"
	"Exit status: that of PROGRAM; 125 if weft refuses or fails, 126 if PROGRAM cannot be\n"
	"executed, 127 if it is not found.\n";

struct run_options {
	unsigned long workers, slice_us; /* 0: not given */
	bool has_stats, has_seed, is_strict;
	const char *trace, *children, *io_uring, *model;
	unsigned long long seed;
	unsigned long long stack_bytes; /* 0: not given */
};

/* Like strtoull(), but of the whole text, without its tolerance for signs and spaces, and without octal numbers. */
static bool parse_number(const char *text, unsigned long long *out)
{
	unsigned long long value;
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	value = strtoull(text, &end, strncmp(text, "0x", 2) == 0 ? 16 : 10);
	if (errno || *end)
		return false;
	*out = value;
	return true;
}

/* The take_ functions read one option, or the variable that stands for it. They return 0 or the exit code. */

static int take_workers(struct run_options *o, const char *name, const char *text)
{
	unsigned long long number;

	if (!parse_number(text, &number) || number < 1 || number > MAX_WORKERS) {
		wf_cmd_error("run: %s takes a number from 1 to %d, not '%s'", name, MAX_WORKERS,
			     text);
		return WF_EXIT_REFUSED;
	}
	o->workers = (unsigned long)number;
	return 0;
}

static int take_seed(struct run_options *o, const char *name, const char *text)
{
	if (!parse_number(text, &o->seed)) {
		wf_cmd_error("run: %s takes a number of at most 64 bits, not '%s'", name, text);
		return WF_EXIT_REFUSED;
	}
	o->has_seed = true;
	return 0;
}

static int take_slice(struct run_options *o, const char *name, const char *text)
{
	unsigned long long number;

	if (!parse_number(text, &number) || number < MIN_SLICE_US || number > MAX_SLICE_US) {
		wf_cmd_error("run: %s takes a number from %d to %d, not '%s'", name, MIN_SLICE_US,
			     MAX_SLICE_US, text);
		return WF_EXIT_REFUSED;
	}
	o->slice_us = (unsigned long)number;
	return 0;
}

static int take_io_uring(struct run_options *o, const char *name, const char *text)
{
	if (strcmp(text, "auto") && strcmp(text, "always") && strcmp(text, "never")) {
		wf_cmd_error("run: %s takes auto, always or never, not '%s'", name, text);
		return WF_EXIT_REFUSED;
	}
	o->io_uring = text;
	return 0;
}

static int take_children(struct run_options *o, const char *name, const char *text)
{
	if (strcmp(text, "yes") && strcmp(text, "no")) {
		wf_cmd_error("run: %s takes yes or no, not '%s'", name, text);
		return WF_EXIT_REFUSED;
	}
	o->children = text;
	return 0;
}

static int take_model(struct run_options *o, const char *name, const char *text)
{
	if (strcmp(text, "1:1") && strcmp(text, "1:N") && strcmp(text, "M:N")) {
		wf_cmd_error("run: %s takes 1:1, 1:N or M:N, not '%s'", name, text);
		return WF_EXIT_REFUSED;
	}
	o->model = text;
	return 0;
}

static int take_trace(struct run_options *o, const char *name, const char *text)
{
	if (!*text) {
		wf_cmd_error("run: %s takes the name of a file, not ''", name);
		return WF_EXIT_REFUSED;
	}
	o->trace = text;
	return 0;
}

/* The number may have a unit: K, M or G. */
static bool parse_bytes(const char *text, unsigned long long *out)
{
	static const char units[] = "KMG";
	size_t digits = strspn(text, "0123456789");
	char number[24];
	const char *unit;

	if (digits >= sizeof(number))
		return false;
	memcpy(number, text, digits);
	number[digits] = '\0';
	if (!parse_number(number, out))
		return false;
	text += digits;
	if (!*text)
		return true;
	unit = strchr(units, *text);
	if (!unit || text[1] || *out > MAX_STACK_BYTES)
		return false;
	*out <<= 10 * (unit - units + 1);
	return true;
}

static int take_stack_size(struct run_options *o, const char *name, const char *text)
{
	struct rlimit limit;

	if (!parse_bytes(text, &o->stack_bytes) || o->stack_bytes < MIN_STACK_BYTES ||
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

static int take_overflow(struct run_options *o, const char *name, const char *text)
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

static int take_answer(bool *out, const char *name, const char *text)
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

static int take_stats(struct run_options *o, const char *name, const char *text)
{
	return take_answer(&o->has_stats, name, text);
}

static int take_strict(struct run_options *o, const char *name, const char *text)
{
	return take_answer(&o->is_strict, name, text);
}

/* It may also say that the events are only kept for weft dump. */
static int take_trace_or_answer(struct run_options *o, const char *name, const char *text)
{
	return answer_of(text) == NEITHER ? take_trace(o, name, text) : 0;
}

/* Returns 0, or the exit code (also for --help, with *out_done set). */
static int parse_options(int argc, char **argv, struct run_options *out, bool *out_done)
{
	static const struct option options[] = {
		{ "workers", required_argument, NULL, 'w' },
		{ "stats", no_argument, NULL, 's' },
		{ "trace", required_argument, NULL, 't' },
		{ "seed", required_argument, NULL, 'S' },
		{ "slice", required_argument, NULL, 'q' },
		{ "io-uring", required_argument, NULL, 'u' },
		{ "stack-size", required_argument, NULL, 'k' },
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
			fputs(run_help, stdout);
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

/* What an option has not set may stand in the environment. Returns 0, or the exit code. */
static int parse_environment(struct run_options *out)
{
	const struct {
		const char *name;
		int (*take)(struct run_options *o, const char *name, const char *text);
		bool is_set;
	} variables[] = {
		{ "WEFT_WORKERS", take_workers, out->workers != 0 },
		{ "WEFT_SEED", take_seed, out->has_seed },
		{ "WEFT_SLICE", take_slice, out->slice_us != 0 },
		{ "WEFT_IO_URING", take_io_uring, out->io_uring != NULL },
		{ "WEFT_CHILDREN", take_children, out->children != NULL },
		{ "WEFT_MODEL", take_model, out->model != NULL },
		{ "WEFT_OVERFLOW", take_overflow, false },
		{ "WEFT_STATS", take_stats, out->has_stats },
		{ "WEFT_STRICT", take_strict, out->is_strict },
		{ "WEFT_TRACE", take_trace_or_answer, out->trace != NULL },
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

static void set_or_die(const char *name, const char *value)
{
	if (setenv(name, value, 1) < 0) {
		wf_cmd_error("cannot set %s: %s", name, strerror(errno));
		exit(WF_EXIT_REFUSED);
	}
}

static void set_number(const char *name, unsigned long long value)
{
	char text[24];

	snprintf(text, sizeof(text), "%llu", value);
	set_or_die(name, text);
}

/* Puts a and b together with a colon between them, where both are there. */
static void set_joined(const char *name, const char *a, const char *b)
{
	char *joined;

	if (!a || !*a || !b || !*b) {
		set_or_die(name, a && *a ? a : b);
		return;
	}
	if (asprintf(&joined, "%s:%s", a, b) < 0) {
		wf_cmd_error("cannot set %s: out of memory", name);
		exit(WF_EXIT_REFUSED);
	}
	set_or_die(name, joined);
	free(joined);
}

static bool has_preload(const char *list, const char *library)
{
	size_t len = strlen(library);

	while (*list) {
		size_t item = strcspn(list, ": ");

		if (item == len && memcmp(list, library, len) == 0)
			return true;
		list += item + (list[item] != '\0');
	}
	return false;
}

/* The user's own value of an option stays: he may have a reason. */
static bool has_option(const char *list, const char *name)
{
	size_t len = strlen(name);

	while (*list) {
		size_t item = strcspn(list, ":");

		if (item > len && memcmp(list, name, len) == 0 && list[len] == '=')
			return true;
		list += item + (list[item] != '\0');
	}
	return false;
}

static void set_trace(const char *file)
{
	char *path = wf_tracefile_prepare(file, getenv("WEFT_PID") ? getenv("WEFT_TRACE") : NULL);

	if (!path)
		exit(WF_EXIT_REFUSED);
	set_or_die("WEFT_TRACE", path);
	free(path);
}

static void set_environment(const struct run_options *o, const char *library)
{
	const char *preload = getenv("LD_PRELOAD");
	const char *tunables = getenv("GLIBC_TUNABLES");
	const char *asan = getenv("ASAN_OPTIONS"), *lsan = getenv("LSAN_OPTIONS");

	if (!preload || !has_preload(preload, library))
		set_joined("LD_PRELOAD", library, preload);
	if (!tunables || !has_option(tunables, STACK_TUNABLE))
		set_joined("GLIBC_TUNABLES", tunables, STACK_TUNABLE "=" STACK_CACHE_BYTES);
	if (!asan || !has_option(asan, ASAN_ORDER))
		set_joined("ASAN_OPTIONS", asan, ASAN_ORDER "=0");
	if (!asan || !has_option(asan, LEAKS))
		set_joined("ASAN_OPTIONS", getenv("ASAN_OPTIONS"), LEAKS "=0");
	if (!lsan || !has_option(lsan, LEAKS))
		set_joined("LSAN_OPTIONS", lsan, LEAKS "=0");
	if (o->workers)
		set_number("WEFT_WORKERS", o->workers);
	if (o->has_stats)
		set_or_die("WEFT_STATS", "1");
	if (o->trace)
		set_trace(o->trace);
	if (o->has_seed)
		set_number("WEFT_SEED", o->seed);
	if (o->slice_us)
		set_number("WEFT_SLICE", o->slice_us);
	if (o->io_uring)
		set_or_die("WEFT_IO_URING", o->io_uring);
	if (o->children)
		set_or_die("WEFT_CHILDREN", o->children);
	if (o->model)
		set_or_die("WEFT_MODEL", o->model);
	if (o->is_strict)
		set_or_die("WEFT_STRICT", "1");
	set_number("WEFT_PID", (unsigned long long)getpid());
}

/* The kernel gives main's stack this limit, and libc takes it for the threads that it makes. */
static void set_stack_size(unsigned long long bytes)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_STACK, &limit) == 0) {
		limit.rlim_cur = bytes;
		if (setrlimit(RLIMIT_STACK, &limit) == 0)
			return;
	}
	wf_cmd_error("run: cannot set the limit of stacks to %llu bytes: %s", bytes,
		     strerror(errno));
	exit(WF_EXIT_REFUSED);
}

static int exec_failed(const char *name)
{
	int error = errno;

	wf_cmd_error("cannot run %s: %s", name, strerror(error));
	return error == ENOENT || error == ENOTDIR ? WF_EXIT_NOT_FOUND : WF_EXIT_NOT_EXECUTABLE;
}

/* As execvp() does it with a script that has no #! line. */
static int exec_by_shell(const char *script, char **argv)
{
	static char shell[] = WF_PROGRAM_SHELL;
	size_t nr = 0;
	char **own;

	while (argv[nr])
		nr++;
	own = calloc(nr + 2, sizeof(*own));
	if (!own)
		return -1;
	own[0] = shell;
	own[1] = (char *)script;
	for (size_t i = 1; i < nr; i++)
		own[i + 1] = argv[i];
	execv(shell, own);
	free(own);
	return -1;
}

/* Returns the exit code only if the program does not run. */
static int run_woven(const struct run_options *o, char **argv)
{
	char library[PATH_MAX], why[256];
	struct wf_program p;
	int exit_code;

	wf_program_examine(&p, argv[0]);
	exit_code = p.exit_code;
	if (exit_code) {
		wf_cmd_error("cannot run %s: %s; %s", argv[0], p.what, p.advice);
	} else if (!wf_library_find(library, why, sizeof(why))) {
		wf_cmd_error("cannot run %s: %s", argv[0], why);
		exit_code = WF_EXIT_REFUSED;
	} else {
		set_environment(o, library);
		if (o->stack_bytes)
			set_stack_size(o->stack_bytes);
		(void)(p.needs_shell ? exec_by_shell(p.path, argv) : execv(p.path, argv));
		exit_code = exec_failed(argv[0]);
	}
	wf_program_done(&p);
	return exit_code;
}

static int run_native(char **argv)
{
	execvp(argv[0], argv);
	return exec_failed(argv[0]);
}

static int run_main(int argc, char **argv)
{
	struct run_options o = { 0 };
	const char *weft = getenv("WEFT"), *why;
	bool is_done = false, is_on = true;
	int ret = parse_options(argc, argv, &o, &is_done);

	if (ret || is_done)
		return ret;
	argv += optind;
	if (weft && *weft)
		ret = take_answer(&is_on, "WEFT", weft);
	if (!ret && !is_on)
		return run_native(argv);
	if (!ret)
		ret = parse_environment(&o);
	if (ret)
		return ret;
	if (o.model && strcmp(o.model, "1:1") == 0) {
		set_or_die("WEFT", "0"); /* for its children, too */
		return run_native(argv);
	}
	why = wf_preflight_why_native();
	if (!why)
		return run_woven(&o, argv);
	if (o.is_strict) {
		wf_cmd_error("not running %s on plain NPTL, as --strict asks: %s", argv[0], why);
		return WF_EXIT_REFUSED;
	}
	wf_cmd_error("running on plain NPTL: %s", why);
	return run_native(argv);
}

const struct wf_cmd wf_run_cmd = {
	.name = "run",
	.summary = "run a program with user-level threads",
	.help = run_help,
	.main = run_main,
};
