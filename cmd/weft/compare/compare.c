// SPDX-License-Identifier: Apache-2.0
/*
 * `weft compare`: options and rounds.
 *
 * Called by: main.c. The two sides take turns, and the order of the turns changes from round to round, so that whatever
 * else the machine does meets both.
 */
#include "compare/compare.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd.h"
#include "program.h"

#define WORKERS_MAX 1024
#define PORT_MAX 65535
#define WARMUPS_MAX 100
#define LIMIT_MAX_S 86400

static const char compare_help[] =
	"Usage: weft compare [OPTION]... [--] PROGRAM [ARGUMENT]...\n"
	"\n"
	"Runs PROGRAM natively and under weft in turn, and says what differs: time, CPU time, context\n"
	"switches, kernel threads, memory, exit status and output.\n"
	"\n"
	"  --rounds N     how often on each side, 1 to 1000 (default: 5)\n"
	"  --warmup N     runs of each side before that, which do not count, 0 to 100 (default: 1)\n"
	"  --load CMD     PROGRAM is a server: start it, wait until it listens, run CMD with sh while\n"
	"                 PORT is set to where, and end the server with SIGTERM\n"
	"  --port N       the TCP port to wait for (default: the lowest at which PROGRAM listens)\n"
	"  --score REGEX  a number that PROGRAM or CMD prints, more is better: the first group of this\n"
	"                 extended regular expression\n"
	"  --input FILE   standard input of PROGRAM (default: empty)\n"
	"  --workers N    under weft, as weft run takes it\n"
	"  --limit S      give up on a run after S seconds, and on a server that does not listen by then, or\n"
	"                 after 30 s (default: 600)\n"
	"  --json         print JSON, with the figures of every round\n"
	"  --help         show this text\n"
	"\n"
	"Exit status: 0; 1 if exit status or output differ, or a run fails; 125 if weft fails, 126 if\n"
	"PROGRAM cannot be executed, 127 if it is not found.\n";

static int refuse(const char *option, const char *wants, const char *got)
{
	wf_cmd_error("compare: %s takes %s, not '%s'", option, wants, got);
	return WF_EXIT_REFUSED;
}

static int take_limit(struct wf_compare *c, const char *text)
{
	char *end;
	double value = strtod(text, &end);

	if (*text < '0' || *text > '9' || *end || !(value > 0 && value <= LIMIT_MAX_S))
		return refuse("--limit", "seconds, up to 86400", text);
	c->limit_s = value;
	return 0;
}

static int take_score(struct wf_compare *c, const char *text)
{
	int error = regcomp(&c->score_regex, text, REG_EXTENDED | REG_NEWLINE);
	char why[128];

	if (error) {
		regerror(error, &c->score_regex, why, sizeof(why));
		wf_cmd_error("compare: --score: '%s' is no regular expression: %s", text, why);
		return WF_EXIT_REFUSED;
	}
	if (c->score_regex.re_nsub < 1)
		return refuse("--score", "an expression with a group, such as '([0-9.]+) req/s'",
			      text);
	c->score = text;
	return 0;
}

static int take_option(struct wf_compare *c, int option, bool *out_help)
{
	switch (option) {
	case 'r':
		return wf_numbers_parse(optarg, 1, WF_COMPARE_ROUNDS_MAX, &c->nr_rounds)
			       ? 0
			       : refuse("--rounds", "a number from 1 to 1000", optarg);
	case 'u':
		return wf_numbers_parse(optarg, 0, WARMUPS_MAX, &c->nr_warmups)
			       ? 0
			       : refuse("--warmup", "a number from 0 to 100", optarg);
	case 'l':
		c->load = optarg;
		return *optarg ? 0 : refuse("--load", "a command", optarg);
	case 'p':
		return wf_numbers_parse(optarg, 1, PORT_MAX, &c->port)
			       ? 0
			       : refuse("--port", "a number from 1 to 65535", optarg);
	case 's':
		return take_score(c, optarg);
	case 'i':
		c->input = optarg;
		return *optarg ? 0 : refuse("--input", "the name of a file", optarg);
	case 'w':
		return wf_numbers_parse(optarg, 1, WORKERS_MAX, &c->workers)
			       ? 0
			       : refuse("--workers", "a number from 1 to 1024", optarg);
	case 't':
		return take_limit(c, optarg);
	case 'j':
		c->is_json = true;
		return 0;
	default:
		*out_help = true;
		return 0;
	}
}

/* Returns 0, or the exit code. */
static int parse_options(int argc, char **argv, struct wf_compare *c, bool *out_help)
{
	static const struct option options[] = {
		{ "rounds", required_argument, NULL, 'r' },
		{ "warmup", required_argument, NULL, 'u' },
		{ "load", required_argument, NULL, 'l' },
		{ "port", required_argument, NULL, 'p' },
		{ "score", required_argument, NULL, 's' },
		{ "input", required_argument, NULL, 'i' },
		{ "workers", required_argument, NULL, 'w' },
		{ "limit", required_argument, NULL, 't' },
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	int option, ret;

	optind = 0;
	opterr = 0;
	while ((option = getopt_long(argc, argv, "+:", options, NULL)) != -1) {
		if (option == '?' || option == ':')
			return wf_cmd_bad_option(&wf_compare_cmd, option, argv);
		ret = take_option(c, option, out_help);
		if (ret || *out_help)
			return ret;
	}
	if (optind == argc) {
		wf_cmd_error("compare: which program? see 'weft help compare'");
		return WF_EXIT_REFUSED;
	}
	if (c->port && !c->load) {
		wf_cmd_error(
			"compare: --port says where the server of --load listens; which load?");
		return WF_EXIT_REFUSED;
	}
	c->command = argv + optind;
	return 0;
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

static bool run_both(struct wf_compare *c, int round, bool counts)
{
	static const char *const names[] = { "natively", "under weft" };

	for (int turn = 0; turn < WF_COMPARE_NR_SIDES; turn++) {
		/* Native first in the first round: its output is what all others are compared with. */
		int side = (turn + round) % 2;

		wf_numbers_progress(2 * round + turn, 2 * (c->nr_warmups + c->nr_rounds),
				    names[side]);
		if (!wf_compare_one_run(c, (enum wf_compare_side_id)side, counts))
			return false;
	}
	return true;
}

static int run_rounds(struct wf_compare *c)
{
	bool is_good = true;

	if (c->port && wf_port_is_taken(c->port)) {
		wf_cmd_error("compare: somebody listens at port %d already", c->port);
		return WF_EXIT_REFUSED;
	}
	for (int round = 0; is_good && round < c->nr_warmups + c->nr_rounds; round++)
		is_good = run_both(c, round, round >= c->nr_warmups);
	wf_numbers_progress_end();
	wf_compare_one_run_done();
	if (!is_good) {
		wf_cmd_error("compare: %s", c->failure);
		return c->is_refused ? WF_EXIT_REFUSED : 1;
	}
	if (c->is_json)
		wf_compare_show_json(c);
	else
		wf_compare_show(c);
	return wf_compare_is_alike(c) ? 0 : 1;
}

static int compare_main(int argc, char **argv)
{
	static struct wf_compare c = { .nr_rounds = 5, .nr_warmups = 1, .limit_s = 600 };
	bool is_help = false;
	int ret = parse_options(argc, argv, &c, &is_help);

	if (ret)
		return ret;
	if (is_help) {
		fputs(compare_help, stdout);
		return 0;
	}
	ret = find_program(c.command[0]);
	if (ret)
		return ret;
	(void)signal(SIGCHLD, SIG_DFL);
	(void)signal(SIGPIPE, SIG_IGN);
	(void)unsetenv("WEFT"); /* WEFT=0 would make both sides native */
	wf_numbers_machine(c.machine, sizeof(c.machine));
	ret = run_rounds(&c);
	if (c.score)
		regfree(&c.score_regex);
	return ret;
}

const struct wf_cmd wf_compare_cmd = {
	.name = "compare",
	.summary = "run a program natively and under weft, and say what differs",
	.help = compare_help,
	.main = compare_main,
};
