// SPDX-License-Identifier: Apache-2.0
/*
 * `weft ps`: the processes that run under weft.
 *
 * Called by: main.c. Invariant: every name from a process passes through text.h.
 */
#include <getopt.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cmd.h"
#include "look/look.h"
#include "target/find.h"
#include "text.h"

#define EXIT_NONE 1

static const char ps_help[] =
	"Usage: weft ps [--json]\n"
	"\n"
	"Lists the processes that have weft loaded, also those in containers: owner, program, age, CPU\n"
	"time, workers, threads of the program, kernel threads, and whether the threads are weft's or\n"
	"the kernel's. Nobody is stopped.\n"
	"\n"
	"  --json        print JSON\n"
	"  --help        show this text\n"
	"\n"
	"Exit status: 0; 1 if there is no such process; 125 if weft itself failed.\n";

enum state {
	STATE_WEFT,
	STATE_NO_THREADS,
	STATE_NATIVE,
	STATE_UNKNOWN,
};

static const char *const state_names[] = { "weft", "no threads yet", "native", "unknown" };

struct row {
	const struct wf_find_process *process;
	struct wf_look_kernel kernel;
	int inner_pid;
	unsigned nr_workers, nr_threads;
	enum state state;
	char why[512]; /* of STATE_NATIVE and STATE_UNKNOWN; may be empty */
	char owner[64];
};

static void take_state(struct row *r, const struct wf_look *l)
{
	const struct wf_layout *y = &l->layout;
	const struct wf_target *t = &l->target;

	wf_look_why_native(l, r->why, sizeof(r->why));
	r->nr_threads = r->kernel.nr_tasks;
	if (wf_layout_fetch(y, t, y->runtime, WF_L_RT_STARTED)) {
		r->state = STATE_WEFT;
		r->nr_workers = (unsigned)wf_layout_fetch(y, t, y->runtime, WF_L_RT_NR_WORKERS);
		r->nr_threads = (unsigned)wf_layout_fetch(y, t, y->process, WF_L_LX_NR_THREADS);
		r->why[0] = '\0';
	} else if (r->why[0] || r->kernel.nr_tasks > 1) {
		r->state = STATE_NATIVE;
	} else {
		r->state = STATE_NO_THREADS;
	}
}

/* False: it has ended. */
static bool take_row(struct row *r, const struct wf_find_process *p)
{
	const struct passwd *user;
	struct wf_look l;
	bool is_open;

	*r = (struct row){ .process = p, .state = STATE_UNKNOWN };
	if (!wf_look_kernel(p->pid, &r->kernel))
		return false;
	user = getpwuid(r->kernel.owner);
	if (user)
		wf_text_clean(r->owner, sizeof(r->owner), user->pw_name);
	else
		snprintf(r->owner, sizeof(r->owner), "%u", (unsigned)r->kernel.owner);
	is_open = wf_look_open(&l, p->pid);
	r->inner_pid = l.target.inner_pid ? l.target.inner_pid : p->pid;
	if (is_open)
		take_state(r, &l);
	else
		wf_text_clean(r->why, sizeof(r->why), l.target.error);
	wf_look_done(&l);
	/* Nobody wants to hear of faults in one that has ended. */
	return wf_look_kernel(p->pid, &r->kernel);
}

static void print_number(unsigned nr)
{
	if (nr)
		printf(" %7u", nr);
	else
		printf(" %7s", "-");
}

static void print_row(const struct row *r)
{
	char age[32], cpu[32], name[256], comm[64];

	wf_text_clean(name, sizeof(name), r->process->name);
	wf_text_clean(comm, sizeof(comm), r->process->comm);
	printf("%8d %-10.10s %-16.16s %8s %8s", r->process->pid, r->owner, name[0] ? name : comm,
	       wf_look_time(age, r->kernel.age_s), wf_look_time(cpu, r->kernel.cpu_s));
	print_number(r->nr_workers);
	print_number(r->nr_threads);
	print_number(r->kernel.nr_tasks);
	printf("  %s%s%s\n", state_names[r->state], r->why[0] ? ": " : "", r->why);
}

static void json_row(struct wf_text_json *j, const struct row *r)
{
	wf_text_json_begin(j, NULL, '{');
	wf_text_json_number(j, "pid", r->process->pid);
	if (r->inner_pid != r->process->pid)
		wf_text_json_number(j, "pid_inside", r->inner_pid);
	wf_text_json_string(j, "program", r->process->name);
	wf_text_json_string(j, "name", r->process->comm);
	wf_text_json_string(j, "user", r->owner);
	wf_text_json_number(j, "uid", r->kernel.owner);
	wf_text_json_number(j, "uptime_ms", (long long)(r->kernel.age_s * 1e3));
	wf_text_json_number(j, "cpu_ms", (long long)(r->kernel.cpu_s * 1e3));
	wf_text_json_number(j, "kernel_threads", r->kernel.nr_tasks);
	wf_text_json_string(j, "state", state_names[r->state]);
	if (r->state == STATE_WEFT)
		wf_text_json_number(j, "workers", r->nr_workers);
	if (r->state != STATE_UNKNOWN)
		wf_text_json_number(j, "threads", r->nr_threads);
	if (r->why[0])
		wf_text_json_string(j, "why", r->why);
	wf_text_json_end(j, '}');
}

static int show(const struct wf_find *f, bool is_json)
{
	struct wf_text_json j = { .out = stdout };
	size_t nr = 0;

	if (is_json) {
		wf_text_json_begin(&j, NULL, '{');
		wf_text_json_string(&j, "weft", WEFT_VERSION);
		wf_text_json_begin(&j, "processes", '[');
	}
	for (size_t i = 0; i < f->nr_processes; i++) {
		struct row r;

		if (!take_row(&r, &f->processes[i]))
			continue;
		if (!nr++ && !is_json)
			printf("%8s %-10s %-16s %8s %8s %7s %7s %7s  %s\n", "PID", "USER",
			       "PROGRAM", "AGE", "CPU", "WORKERS", "THREADS", "KERNEL", "STATE");
		if (is_json)
			json_row(&j, &r);
		else
			print_row(&r);
	}
	if (is_json) {
		wf_text_json_end(&j, ']');
		wf_text_json_end(&j, '}');
	}
	if (!nr)
		wf_cmd_error("ps: no process runs under weft%s",
			     f->nr_hidden && geteuid()
				     ? "; those of other users are seen by root only"
				     : "");
	return nr ? 0 : EXIT_NONE;
}

static int ps_main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	bool is_json = false;
	struct wf_find f;
	int c, ret = WF_EXIT_REFUSED;

	optind = 0; /* main() has parsed options of its own */
	opterr = 0;
	while ((c = getopt_long(argc, argv, ":", options, NULL)) != -1) {
		if (c == 'h') {
			fputs(ps_help, stdout);
			return 0;
		}
		if (c != 'j')
			return wf_cmd_bad_option(&wf_ps_cmd, c, argv);
		is_json = true;
	}
	if (optind < argc) {
		wf_cmd_error("ps: takes no arguments, not '%s'; see 'weft help ps'", argv[optind]);
		return ret;
	}
	if (wf_find_all(&f))
		ret = show(&f, is_json);
	else
		wf_cmd_error("ps: cannot list the processes: /proc is not there, or no memory");
	wf_find_done(&f);
	return ret;
}

const struct wf_cmd wf_ps_cmd = {
	.name = "ps",
	.summary = "list the processes that run under weft",
	.help = ps_help,
	.main = ps_main,
};
