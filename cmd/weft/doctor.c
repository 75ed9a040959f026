// SPDX-License-Identifier: Apache-2.0
/*
 * `weft doctor`: options and output; what is checked stands in checks.c and report.c.
 *
 * Called by: main.c. Invariant: a check reads only, and its exit code is the worst level found; what changes the machine is
 * in tune/.
 */
#include <errno.h>
#include <getopt.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "checks.h"
#include "cmd.h"
#include "report.h"
#include "snapshot.h"
#include "text.h"
#include "tune/tune.h"

static const char doctor_help[] =
	"Usage: weft doctor [--json] [--root DIR]\n"
	"       weft doctor [--json | --calls] --program FILE|PID\n"
	"       weft doctor --explain ID\n"
	"       weft doctor --tune [--json] [--root DIR]\n"
	"       weft doctor --apply [--dry-run] [--force] [--i-know] [--root DIR] ID[@NAME][=VALUE]...\n"
	"       weft doctor --undo | --verify [--root DIR] [JOURNAL]\n"
	"       weft doctor --emit sysctl.d|tuned|link|cmdline ID[@NAME][=VALUE]...\n"
	"       weft doctor --snapshot FILE\n"
	"\n"
	"Checks whether this machine, or one program, is fit for weft; says what could be set on the\n"
	"machine. Changes nothing but with --apply and --undo.\n"
	"\n"
	"  --program FILE|PID\n"
	"                  check a program: does it run under weft, what does it use, which stacks\n"
	"                  and workers are worth trying?\n"
	"  --calls         with --program: list what becomes of each call that it uses\n"
	"  --json          print JSON, with all calls\n"
	"  --explain ID    say why a check is made; IDs are the second column\n"
	"  --root DIR      read /proc and /sys below DIR, a copy of another machine's\n"
	"  --tune          list what could be set, and why, after a second of looking for symptoms\n"
	"  --apply         set it, with a journal in /var/lib/weft/doctor; without VALUE as --tune says\n"
	"  --dry-run       with --apply: only say what would be set\n"
	"  --force         with --apply: also what tuned or irqbalance sets, while it runs\n"
	"  --i-know        with --apply: also registers of the hardware (dca, dca-cpu)\n"
	"  --undo          take back what a journal says, the newest that was not undone\n"
	"  --verify        say whether what a journal says still holds\n"
	"  --emit FORMAT   print the settings for a tool that keeps them over a boot\n"
	"  --snapshot FILE write what is read here into a tar file; unpacked, --root DIR reads it\n"
	"  --help          show this text\n"
	"\n"
	"Exit status: 0 if all is well, 1 with warnings, 2 with failures, 125 if weft itself fails.\n";

struct doctor_options {
	const char *root, *program, *explain, *snapshot;
	bool is_json, is_help, has_calls;
	struct wf_tune_request tune;
};

static int exit_code_of(enum wf_checks_level worst)
{
	return worst == WF_CHECKS_FAIL ? 2 : worst == WF_CHECKS_WARN ? 1 : 0;
}

static void print_text(const struct wf_check *c, const struct wf_checks_finding *f)
{
	char value[sizeof(f->value)], advice[sizeof(f->advice)];
	static const enum wf_text_tone tones[] = {
		[WF_CHECKS_OK] = WF_TEXT_GOOD,
		[WF_CHECKS_SKIPPED] = WF_TEXT_PLAIN,
		[WF_CHECKS_WARN] = WF_TEXT_DOUBT,
		[WF_CHECKS_FAIL] = WF_TEXT_BAD,
	};

	/* Capitals, so that a failure stands out in a terminal without colours. */
	printf("%s%-4s%s  %-12s  %-26s  %s\n", wf_text_tone(tones[f->level]),
	       f->level == WF_CHECKS_FAIL ? "FAIL" : wf_checks_level_name(f->level),
	       wf_text_plain(), c->id, c->title, wf_text_clean(value, sizeof(value), f->value));
	if (f->advice[0] && f->level != WF_CHECKS_SKIPPED)
		printf("      %-12s  %s\n", "", wf_text_clean(advice, sizeof(advice), f->advice));
}

static void print_json(struct wf_text_json *j, const struct wf_check *c,
		       const struct wf_checks_finding *f)
{
	wf_text_json_begin(j, NULL, '{');
	wf_text_json_string(j, "id", c->id);
	wf_text_json_string(j, "title", c->title);
	wf_text_json_string(j, "severity", wf_checks_level_name(c->severity));
	wf_text_json_string(j, "level", wf_checks_level_name(f->level));
	wf_text_json_string(j, "value", f->value);
	wf_text_json_string(j, "advice", f->advice);
	wf_text_json_string(j, "why", c->why);
	wf_text_json_end(j, '}');
}

static const char *plural(unsigned int nr)
{
	return nr == 1 ? "" : "s";
}

static int check_machine(const struct doctor_options *o)
{
	const struct wf_machine m = { .root = o->root };
	struct wf_text_json j = { .out = stdout };
	struct wf_checks_finding f;
	enum wf_checks_level worst = WF_CHECKS_OK;
	unsigned int nr[4] = { 0 };

	if (o->is_json) {
		wf_text_json_begin(&j, NULL, '{');
		wf_text_json_string(&j, "version", WEFT_VERSION);
		wf_text_json_begin(&j, "checks", '[');
	}
	for (size_t i = 0; i < wf_checks_nr; i++) {
		wf_checks_run(&wf_checks[i], &m, &f);
		nr[f.level]++;
		if (f.level > worst)
			worst = f.level;
		if (o->is_json)
			print_json(&j, &wf_checks[i], &f);
		else
			print_text(&wf_checks[i], &f);
	}
	if (o->is_json) {
		wf_text_json_end(&j, ']');
		wf_text_json_begin(&j, "summary", '{');
		for (enum wf_checks_level l = WF_CHECKS_OK; l <= WF_CHECKS_FAIL; l++)
			wf_text_json_number(&j, wf_checks_level_name(l), nr[l]);
		wf_text_json_end(&j, '}');
		wf_text_json_end(&j, '}');
	} else {
		printf("\n%u ok, %u warning%s, %u failure%s", nr[WF_CHECKS_OK], nr[WF_CHECKS_WARN],
		       plural(nr[WF_CHECKS_WARN]), nr[WF_CHECKS_FAIL], plural(nr[WF_CHECKS_FAIL]));
		if (nr[WF_CHECKS_SKIPPED])
			printf(", %u skipped", nr[WF_CHECKS_SKIPPED]);
		puts(worst > WF_CHECKS_SKIPPED ? "; weft doctor --explain ID says more" : "");
	}
	return exit_code_of(worst);
}

static int explain(const char *id)
{
	for (size_t i = 0; i < wf_checks_nr; i++) {
		if (strcmp(wf_checks[i].id, id) == 0) {
			printf("%s: %s\n\n%s\n", id, wf_checks[i].title, wf_checks[i].why);
			return 0;
		}
	}
	wf_cmd_error("doctor: no check '%s'; 'weft doctor' lists them", id);
	return WF_EXIT_REFUSED;
}

/* Options that do not fit together, and a copy of a machine that is none. Returns 0, or the exit code. */
static int check_options(const struct doctor_options *o)
{
	struct stat st;

	if (o->explain && (o->is_json || o->program || *o->root || o->snapshot)) {
		wf_cmd_error("doctor: --explain takes no other option");
		return WF_EXIT_REFUSED;
	}
	if (o->snapshot &&
	    (o->is_json || o->program || *o->root || o->has_calls || o->tune.action)) {
		wf_cmd_error("doctor: --snapshot takes no other option");
		return WF_EXIT_REFUSED;
	}
	if (o->has_calls && !o->program) {
		wf_cmd_error("doctor: --calls is for --program");
		return WF_EXIT_REFUSED;
	}
	if (*o->root && o->program) {
		wf_cmd_error("doctor: --root is for the machine, not for --program");
		return WF_EXIT_REFUSED;
	}
	if (o->tune.action && (o->program || o->has_calls || o->explain ||
			       (o->is_json && o->tune.action != WF_TUNE_LIST))) {
		wf_cmd_error("doctor: --json goes with --tune, and no other option of checks with "
			     "--tune, --apply, --undo, --verify or --emit");
		return WF_EXIT_REFUSED;
	}
	if ((o->tune.is_dry || o->tune.is_forced || o->tune.is_sure) &&
	    o->tune.action != WF_TUNE_APPLY) {
		wf_cmd_error("doctor: --dry-run, --force and --i-know are for --apply");
		return WF_EXIT_REFUSED;
	}
	if (*o->root && stat(o->root, &st) < 0) {
		wf_cmd_error("doctor: cannot read %s: %s", o->root, strerror(errno));
		return WF_EXIT_REFUSED;
	}
	if (*o->root && !S_ISDIR(st.st_mode)) {
		wf_cmd_error("doctor: --root takes a directory, not '%s'", o->root);
		return WF_EXIT_REFUSED;
	}
	return 0;
}

/* Says no where there is one already. */
static bool take_action(int option, struct wf_tune_request *out)
{
	if (out->action) {
		wf_cmd_error(
			"doctor: one of --tune, --apply, --undo, --verify and --emit at a time");
		return false;
	}
	if (option == 'm')
		out->format = optarg;
	out->action = option == 't'   ? WF_TUNE_LIST
		      : option == 'a' ? WF_TUNE_APPLY
		      : option == 'u' ? WF_TUNE_UNDO
		      : option == 'v' ? WF_TUNE_VERIFY
				      : WF_TUNE_EMIT;
	return true;
}

static size_t most_words(enum wf_tune_action action)
{
	return action == WF_TUNE_APPLY || action == WF_TUNE_EMIT    ? SIZE_MAX
	       : action == WF_TUNE_UNDO || action == WF_TUNE_VERIFY ? 1
								    : 0;
}

static int parse_options(int argc, char **argv, struct doctor_options *out)
{
	static const struct option options[] = {
		{ "program", required_argument, NULL, 'p' },
		{ "calls", no_argument, NULL, 'c' },
		{ "json", no_argument, NULL, 'j' },
		{ "explain", required_argument, NULL, 'e' },
		{ "root", required_argument, NULL, 'r' },
		{ "snapshot", required_argument, NULL, 's' },
		{ "tune", no_argument, NULL, 't' },
		{ "apply", no_argument, NULL, 'a' },
		{ "undo", no_argument, NULL, 'u' },
		{ "verify", no_argument, NULL, 'v' },
		{ "emit", required_argument, NULL, 'm' },
		{ "dry-run", no_argument, NULL, 'd' },
		{ "force", no_argument, NULL, 'f' },
		{ "i-know", no_argument, NULL, 'i' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	int c;

	optind = 0;
	opterr = 0;
	while ((c = getopt_long(argc, argv, ":", options, NULL)) != -1) {
		switch (c) {
		case 'p':
			out->program = optarg;
			break;
		case 'c':
			out->has_calls = true;
			break;
		case 'j':
			out->is_json = true;
			break;
		case 'e':
			out->explain = optarg;
			break;
		case 'r':
			/* An empty variable of a script must not mean the machine itself. */
			if (!*optarg) {
				wf_cmd_error("doctor: --root takes a directory, not ''");
				return WF_EXIT_REFUSED;
			}
			out->root = optarg;
			break;
		case 's':
			out->snapshot = optarg;
			if (*optarg)
				break;
			wf_cmd_error("doctor: --snapshot takes the name of a file, not ''");
			return WF_EXIT_REFUSED;
		case 'h':
			out->is_help = true;
			break;
		case 'd':
			out->tune.is_dry = true;
			break;
		case 'f':
			out->tune.is_forced = true;
			break;
		case 'i':
			out->tune.is_sure = true;
			break;
		case '?':
		case ':':
			return wf_cmd_bad_option(&wf_doctor_cmd, c, argv);
		default:
			if (!take_action(c, &out->tune))
				return WF_EXIT_REFUSED;
		}
	}
	out->tune.words = argv + optind;
	out->tune.nr_words = (size_t)(argc - optind);
	if (out->tune.nr_words > most_words(out->tune.action)) {
		wf_cmd_error("doctor: what is '%s'? see 'weft help doctor'",
			     out->tune.words[most_words(out->tune.action)]);
		return WF_EXIT_REFUSED;
	}
	return out->is_help ? 0 : check_options(out);
}

static int doctor_main(int argc, char **argv)
{
	struct doctor_options o = { .root = "" };
	int ret = parse_options(argc, argv, &o);

	if (ret)
		return ret;
	if (o.is_help) {
		fputs(doctor_help, stdout);
		return 0;
	}
	if (o.explain)
		return explain(o.explain);
	if (o.snapshot)
		return wf_snapshot_write(o.snapshot);
	if (o.tune.action) {
		o.tune.root = o.root;
		o.tune.is_json = o.is_json;
		return wf_tune_main(&o.tune);
	}
	if (o.program)
		return wf_report_program(o.program, o.is_json, o.has_calls);
	return check_machine(&o);
}

const struct wf_cmd wf_doctor_cmd = {
	.name = "doctor",
	.summary = "check the machine, or a program, before running it",
	.help = doctor_help,
	.main = doctor_main,
};
