// SPDX-License-Identifier: Apache-2.0
/*
 * `weft trace`: what a program's threads did in its last seconds, as a file for a viewer.
 *
 * Called by: main.c. Invariant: the program goes on, is not stopped, and nothing is written to it but the word of --arm.
 */
#include "trace/trace.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "numbers.h"
#include "sizes.h"
#include "which.h"
#include "trace/arm.h"
#include "trace/stop.h"
#include "trace/when.h"

#define KEEP 5
#define KEEP_MAX 1000

static const char trace_help[] =
	"Usage: weft trace [OPTION]... PID|NAME\n"
	"       weft trace [OPTION]... --core FILE [--exe FILE]\n"
	"\n"
	"Writes what the threads of a program did last to a file: who ran on which worker, who woke whom,\n"
	"who waited for what. The program must have been started with 'weft run --record', or be told to\n"
	"record by --arm; it goes on, and is not stopped. NAME is that of its program, where only one\n"
	"process has it.\n"
	"\n"
	"  --arm[=SIZE]  have the program record from now on. Nothing is written to a file but with --for or --on.\n"
	"                SIZE is as for 'weft run --record'\n"
	"  --disarm      have it record no more; what it has recorded stays\n"
	"  --last TIME   no more than this much of it (default: all that is there)\n"
	"  --for TIME    from now on, for so long, or until interrupted\n"
	"  --on WHAT     wait until it happens, and keep what led to it: a trace and a dump, each time.\n"
	"                WHAT is call>TIME, ready>TIME, stall, stall>TIME or deadlock; may be repeated\n"
	"  --keep N      of those, the last N, 1 to 1000 (default: 5)\n"
	"  --core FILE   from a core file instead of a process\n"
	"  --exe FILE    the core's program, if it is not where it was\n"
	"  -o FILE       write to FILE, - being standard output (default: weft-PID.pftrace, or .json or .txt);\n"
	"                with --on the directory of the files (default: this one)\n"
	"  -f FORMAT     perfetto, json or text: for https://ui.perfetto.dev, for chrome://tracing, or a line\n"
	"                for each event (default: perfetto)\n"
	"  --quiet       do not say what was written\n"
	"  --help        show this text\n"
	"\n"
	"A TIME is a number with us, ms, s, m or h behind it.\n"
	"\n"
	"Exit status: 0; 1 if nothing of --on has happened; 125 if there is no such process, it keeps no\n"
	"events, or may not be read, or if the file cannot be written.\n";

static int refuse(const char *option, const char *wants, const char *got)
{
	wf_cmd_error("trace: %s takes %s, not '%s'", option, wants, got);
	return WF_EXIT_REFUSED;
}

static int take_time(const char *option, int64_t *out)
{
	return wf_stop_parse_time(optarg, out)
		       ? 0
		       : refuse(option, "a time from 1us to 24h, such as 5s or 200ms", optarg);
}

static int take_arm(struct wf_trace_options *o)
{
	unsigned long long bytes;

	if (!wf_sizes_parse_record(optarg, &bytes, &o->has_calls))
		return refuse("--arm", "a size from 4K to 1G, calls, or SIZE,calls", optarg);
	o->is_arm = true;
	o->ring_bytes = bytes;
	return 0;
}

static int parse_options(int argc, char **argv, struct wf_trace_options *o)
{
	static const struct option options[] = {
		{ "last", required_argument, NULL, 'l' },
		{ "for", required_argument, NULL, 'F' },
		{ "on", required_argument, NULL, 'O' },
		{ "keep", required_argument, NULL, 'k' },
		{ "core", required_argument, NULL, 'c' },
		{ "exe", required_argument, NULL, 'x' },
		{ "arm", optional_argument, NULL, 'a' },
		{ "disarm", no_argument, NULL, 'A' },
		{ "quiet", no_argument, NULL, 'q' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	int c, keep = 0, ret = 0;

	optind = 0; /* main() has parsed options of its own */
	opterr = 0;
	while (!ret && (c = getopt_long(argc, argv, ":o:f:", options, NULL)) != -1) {
		switch (c) {
		case 'l':
			ret = take_time("--last", &o->last_ns);
			break;
		case 'F':
			ret = take_time("--for", &o->for_ns);
			break;
		case 'O':
			if (!wf_when_add(o, optarg))
				ret = refuse("--on", WF_WHEN_FORMS, optarg);
			break;
		case 'k':
			if (!wf_numbers_parse(optarg, 1, KEEP_MAX, &keep))
				ret = refuse("--keep", "a number from 1 to 1000", optarg);
			o->keep = (unsigned)keep;
			break;
		case 'a':
			ret = take_arm(o);
			break;
		case 'A':
			o->is_disarm = true;
			break;
		case 'c':
			o->core = optarg;
			break;
		case 'x':
			o->exe = optarg;
			break;
		case 'o':
			o->file = optarg;
			ret = *optarg ? 0 : refuse("-o", "the name of a file", optarg);
			break;
		case 'f':
			if (!wf_trace_find_format(optarg, &o->format))
				ret = refuse("-f", "perfetto, json or text", optarg);
			break;
		case 'q':
			o->is_quiet = true;
			break;
		case 'h':
			o->is_help = true;
			return 0;
		default:
			return wf_cmd_bad_option(&wf_trace_cmd, c, argv);
		}
	}
	return ret;
}

static int check_together(int argc, char **argv, struct wf_trace_options *o)
{
	const char *bad = NULL;

	if ((o->is_arm || o->is_disarm) && o->core)
		bad = "--arm and --disarm are for a process: a core does not go on";
	else if (o->is_disarm && (o->is_arm || o->for_ns || o->last_ns || o->nr_conditions))
		bad = "--disarm goes alone";
	else if (o->is_arm && o->last_ns && !o->for_ns && !o->nr_conditions)
		bad = "--arm begins only now: there is nothing for --last yet";
	else if (o->core && o->nr_conditions)
		bad = "--on is for a process: a core does not go on";
	else if (o->keep && !o->nr_conditions)
		bad = "--keep goes with --on";
	else if (o->core && o->for_ns)
		bad = "--for is for a process: a core does not go on";
	if (bad) {
		wf_cmd_error("trace: %s", bad);
		return WF_EXIT_REFUSED;
	}
	return wf_which("trace", argc, argv, o->core, o->exe, &o->pid);
}

static int trace_main(int argc, char **argv)
{
	struct wf_trace_options o = { 0 };
	int ret = parse_options(argc, argv, &o);

	if (!ret && o.is_help) {
		fputs(trace_help, stdout);
		return 0;
	}
	if (!ret && !o.format)
		(void)wf_trace_find_format(NULL, &o.format);
	if (!ret)
		ret = check_together(argc, argv, &o);
	if (!o.keep)
		o.keep = KEEP;
	if (ret)
		return ret;
	if (o.is_arm || o.is_disarm) {
		ret = wf_arm_run(&o);
		if (ret || (!o.for_ns && !o.nr_conditions))
			return ret;
	}
	return o.nr_conditions ? wf_when_run(&o) : wf_trace_run(&o);
}

const struct wf_cmd wf_trace_cmd = {
	.name = "trace",
	.summary = "write down what the threads of a program did last",
	.help = trace_help,
	.main = trace_main,
};
