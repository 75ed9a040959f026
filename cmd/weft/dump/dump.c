// SPDX-License-Identifier: Apache-2.0
/*
 * `weft dump`: every thread of a process or core file, where it is and what it waits for.
 *
 * Called by: main.c. Invariant: the target stands still only inside snapshot(); symbols, unwinding and
 * output work on the copy, and whatever goes wrong here, the target goes on.
 */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "dump/alarm.h"
#include "dump/print.h"
#include "dump/stacks.h"
#include "dump/tree.h"
#include "which.h"

#define GROUP_FROM 51 /* a list longer than that is read only once it is grouped */
#define EXIT_LACKS_EVENTS 1
#define LIMIT_LISTED 1000
#define LIMIT_GROUPED 100000

static const char dump_help[] =
	"Usage: weft dump [OPTION]... PID|NAME\n"
	"       weft dump [OPTION]... --core FILE [--exe FILE]\n"
	"\n"
	"Shows every thread of a program that runs under weft: state, what it waits for and since\n"
	"when, and the functions it is in. The program goes on running; it is stopped only while\n"
	"its threads are copied. NAME is that of its program, where only one process has it.\n"
	"\n"
	"  --core FILE   look at a core file instead of a process\n"
	"  --exe FILE    the core's program, if it is not where it was\n"
	"  --tree        show groups of threads, each below the thread that opened it, with its threads,\n"
	"                their scopes and deadlines; no stacks\n"
	"  --waits       show where threads wait, by their stacks: those first that wait longest together\n"
	"  --json        print JSON\n"
	"  --stacks      show how much of their stacks the threads have used, and propose sizes\n"
	"  --group       show threads with the same stack once (default for more than 50)\n"
	"  --no-group    list every thread\n"
	"  --thread TID  show this thread only\n"
	"  --limit N     read at most N threads (default: 1,000; 100,000 when grouped)\n"
	"  --events N    show the last N scheduler events; the program must run with --record\n"
	"  --all-frames  show weft's own functions on the stacks too\n"
	"  --help        show this text\n"
	"\n"
	"Exit status: 0; 1 if there are no events to show; 125 if there is no such process, it is not\n"
	"under weft, or may not be read.\n";

struct dump_options {
	int pid;
	const char *core, *exe;
	bool is_json, is_tree, is_waits, is_help, has_runtime, has_stacks;
	int group;    /* -1: by number */
	size_t limit; /* 0: default */
	size_t events;
	size_t only; /* 0: all threads */
};

static bool parse_number(const char *text, unsigned long max, unsigned long *out)
{
	unsigned long value;
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	value = strtoul(text, &end, 10);
	if (errno || *end || !value || value > max)
		return false;
	*out = value;
	return true;
}

static int take_number(const char *option, unsigned long max, size_t *out)
{
	unsigned long n;

	if (!parse_number(optarg, max, &n)) {
		wf_cmd_error("dump: %s takes a number from 1 to %lu, not '%s'", option, max,
			     optarg);
		return WF_EXIT_REFUSED;
	}
	*out = n;
	return 0;
}

static int parse_options(int argc, char **argv, struct dump_options *o)
{
	static const struct option options[] = {
		{ "core", required_argument, NULL, 'c' },
		{ "exe", required_argument, NULL, 'x' },
		{ "tree", no_argument, NULL, 'T' },
		{ "waits", no_argument, NULL, 'w' },
		{ "json", no_argument, NULL, 'j' },
		{ "stacks", no_argument, NULL, 's' },
		{ "group", no_argument, NULL, 'g' },
		{ "no-group", no_argument, NULL, 'n' },
		{ "limit", required_argument, NULL, 'l' },
		{ "thread", required_argument, NULL, 't' },
		{ "events", required_argument, NULL, 'e' },
		{ "all-frames", no_argument, NULL, 'a' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	int c, ret = 0;

	optind = 0; /* main() has parsed options of its own */
	opterr = 0;
	while (!ret && (c = getopt_long(argc, argv, ":", options, NULL)) != -1) {
		switch (c) {
		case 'c':
			o->core = optarg;
			break;
		case 'x':
			o->exe = optarg;
			break;
		case 'T':
			o->is_tree = true;
			break;
		case 'w':
			o->is_waits = true;
			break;
		case 'j':
			o->is_json = true;
			break;
		case 's':
			o->has_stacks = true;
			break;
		case 'g':
		case 'n':
			o->group = c == 'g';
			break;
		case 'l':
			ret = take_number("--limit", 1u << 20, &o->limit);
			break;
		case 'e':
			ret = take_number("--events", 1u << 20, &o->events);
			break;
		case 't':
			ret = take_number("--thread", INT_MAX, &o->only);
			break;
		case 'a':
			o->has_runtime = true;
			break;
		case 'h':
			o->is_help = true;
			return 0;
		default:
			return wf_cmd_bad_option(&wf_dump_cmd, c, argv);
		}
	}
	return ret;
}

static int parse_target(int argc, char **argv, struct dump_options *o)
{
	if (o->core && o->has_stacks) {
		wf_cmd_error("dump: --stacks is for a process: a core does not say what was used");
		return WF_EXIT_REFUSED;
	}
	if (o->only && o->has_stacks) {
		wf_cmd_error("dump: either --thread or --stacks");
		return WF_EXIT_REFUSED;
	}
	if (o->is_tree && (o->only || o->has_stacks || o->group == 1)) {
		wf_cmd_error("dump: either --tree or %s", o->only         ? "--thread"
							  : o->has_stacks ? "--stacks"
									  : "--group");
		return WF_EXIT_REFUSED;
	}
	if (o->is_waits &&
	    (o->is_json || o->is_tree || o->only || o->has_stacks || o->group == 0)) {
		wf_cmd_error("dump: either --waits or %s", o->is_json      ? "--json"
							   : o->is_tree    ? "--tree"
							   : o->only       ? "--thread"
							   : o->has_stacks ? "--stacks"
									   : "--no-group");
		return WF_EXIT_REFUSED;
	}
	return wf_which("dump", argc, argv, o->core, o->exe, &o->pid);
}

/* One line; when the process is not there any more, nothing else that was found out is of interest. */
static int fail(const struct wf_target *t)
{
	if (t->pid && wf_target_is_gone(t))
		wf_cmd_error("dump: process %d ended while it was looked at", t->pid);
	else
		wf_cmd_error("dump: %s", t->error);
	return WF_EXIT_REFUSED;
}

/* All that happens while the target stands still. */
static bool snapshot(struct wf_threads *out, struct wf_groups *groups, const struct wf_layout *l,
		     struct wf_target *t, size_t limit, size_t events, int64_t only)
{
	bool is_ok;

	wf_budget_set_time(t->budget, WF_BUDGET_STOPPED_S);
	is_ok = wf_target_stop(t);
	if (is_ok && (!wf_threads_read(out, l, t, limit, events, only) ||
		      (groups && !wf_groups_read(groups, l, t, out, only)))) {
		snprintf(t->error, sizeof(t->error), "out of memory");
		is_ok = false;
	}
	wf_target_resume(t);
	return is_ok;
}

/* Stacks into frames; without libdw there are none, and the rest is shown. */
static bool unwind(struct wf_dump_view *v, struct wf_threads *s, struct wf_groups *g,
		   struct wf_target *t)
{
	const char *why;

	wf_budget_set_time(t->budget, WF_BUDGET_PHASE_S);
	v->unwind = wf_unwind_new(t, v->layout, &why);
	if (!v->unwind)
		return wf_target_fail(t, "out of memory");
	if (why) {
		v->has_no_stacks = true;
		wf_cmd_error("dump: no stacks are shown: %s", why);
	}
	for (size_t i = 0; i < s->nr_threads; i++) {
		if (!v->only || v->only == s->threads[i].tid)
			wf_unwind_thread(v->unwind, &s->threads[i]);
	}
	for (size_t i = 0; i < g->nr_fibers; i++)
		wf_unwind_thread(v->unwind, &g->fibers[i].stack);
	v->waits = wf_waits_new(t, s, v->layout, v->unwind);
	return v->waits || wf_target_fail(t, "out of memory");
}

static size_t limit_of(const struct dump_options *o, const struct wf_layout *l,
		       const struct wf_target *t, bool *out_is_grouped)
{
	/* Slots, not threads: an upper bound that costs one read. Refined when the threads are known. */
	uint64_t nr = wf_layout_fetch(l, t, l->table, WF_L_TABLE_NR_SLOTS);

	*out_is_grouped = o->has_stacks || o->is_waits ||
			  (!o->is_json && !o->is_tree && !o->only &&
			   (o->group < 0 ? nr >= GROUP_FROM : o->group == 1));
	if (o->limit)
		return o->limit;
	return *out_is_grouped || o->only ? LIMIT_GROUPED : LIMIT_LISTED;
}

static bool has_thread(const struct wf_threads *s, int64_t tid)
{
	for (size_t i = 0; i < s->nr_threads; i++) {
		if (s->threads[i].tid == tid)
			return true;
	}
	return false;
}

static int show(const struct dump_options *o, struct wf_target *t, const struct wf_layout *l)
{
	struct wf_threads s = { 0 };
	struct wf_groups groups = { 0 };
	struct wf_dump_view v = { .target = t,
				  .layout = l,
				  .threads = &s,
				  .has_runtime = o->has_runtime,
				  .is_waits = o->is_waits,
				  .only = (int64_t)o->only };
	size_t limit = limit_of(o, l, t, &v.is_grouped);
	int ret = WF_EXIT_REFUSED;

	v.groups = v.is_grouped ? NULL : &groups;
	if (!snapshot(&s, v.groups ? &groups : NULL, l, t, limit, o->events, v.only))
		goto out;
	if (v.only && !has_thread(&s, v.only)) {
		if (t->is_core)
			(void)wf_target_fail(t, "the core file has no thread %lld",
					     (long long)v.only);
		else
			(void)wf_target_fail(t, "process %d has no thread %lld", t->pid,
					     (long long)v.only);
		goto out;
	}
	if (o->group < 0 && !o->is_waits && s.nr_alive < GROUP_FROM)
		v.is_grouped = false;
	if (!unwind(&v, &s, &groups, t))
		goto out;
	wf_alarm_arm_output();
	wf_budget_set_time(t->budget, WF_BUDGET_PHASE_S);
	if (o->has_stacks) {
		ret = wf_stacks_print(&v, o->is_json) ? 0 : WF_EXIT_REFUSED;
		if (ret)
			(void)wf_target_fail(
				t, "cannot find out what the stacks of process %d hold", t->pid);
		goto out;
	}
	ret = o->events && s.is_started && !s.has_events ? EXIT_LACKS_EVENTS : 0;
	if (ret)
		wf_cmd_error("dump: no events are shown: the program records none; start it with "
			     "'weft run --record'");
	if (o->is_json)
		wf_print_json(&v);
	else if (o->is_tree)
		wf_print_tree(&v);
	else
		wf_print_text(&v);
out:
	if (ret == WF_EXIT_REFUSED)
		ret = fail(t);
	wf_waits_free(v.waits);
	wf_unwind_free(v.unwind);
	wf_groups_done(&groups);
	wf_threads_done(&s);
	return ret;
}

static int dump_main(int argc, char **argv)
{
	struct dump_options o = { .group = -1 };
	struct wf_layout l = { 0 };
	struct wf_budget budget;
	struct wf_target t;
	bool is_ok;
	int ret = parse_options(argc, argv, &o);

	if (!ret && o.is_help) {
		fputs(dump_help, stdout);
		return 0;
	}
	if (!ret)
		ret = parse_target(argc, argv, &o);
	if (ret)
		return ret;
	wf_budget_begin(&budget);
	wf_alarm_arm();
	is_ok = o.core ? wf_target_open_core(&t, o.core, o.exe, &budget)
		       : wf_target_open_process(&t, o.pid, &budget);
	if (!is_ok) {
		wf_cmd_error("dump: %s", t.error);
		ret = WF_EXIT_REFUSED;
	} else {
		ret = wf_layout_read(&l, &t) ? show(&o, &t, &l) : fail(&t);
	}
	wf_layout_done(&l);
	wf_target_done(&t);
	return ret;
}

const struct wf_cmd wf_dump_cmd = {
	.name = "dump",
	.summary = "show where every thread of a program is",
	.help = dump_help,
	.main = dump_main,
};
