// SPDX-License-Identifier: Apache-2.0
/*
 * `weft metrics`: the figures of a process for monitoring, printed, written to a file again and again, or served.
 *
 * Called by: main.c. Invariant: nobody ever sees a file that is only partly written.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cmd.h"
#include "look/openmetrics.h"
#include "look/serve.h"
#include "numbers.h"
#include "target/find.h"

#define EXIT_ENDED 3
#define DAY_S 86400

static const char metrics_help[] =
	"Usage: weft metrics [OPTION]... PID|NAME\n"
	"\n"
	"Prints the figures of a process under weft as OpenMetrics text. The process is not stopped.\n"
	"\n"
	"  -f FORMAT             openmetrics (default), or text: what came before it, and the default\n"
	"                        with -o\n"
	"  -o FILE               write FILE instead; it is exchanged as a whole\n"
	"  --every S             with -o: again every S seconds, until the process ends\n"
	"  --listen ADDRESS:PORT answer GET /metrics there until the process ends; without ADDRESS,\n"
	"                        on 127.0.0.1\n"
	"  --help                show this text\n"
	"\n"
	"Exit status: 0; 3 if the process has ended; 125 if there is no such process, it is not under\n"
	"weft, or may not be read, or if weft itself failed.\n";

struct metrics_options {
	const char *file, *place;
	int every_s; /* 0: once */
	int pid;
	enum wf_openmetrics_format format;
	bool has_format, is_help;
};

static bool take_format(struct metrics_options *o, const char *name)
{
	o->has_format = true;
	o->format = strcmp(name, "text") == 0 ? WF_OPENMETRICS_TEXT : WF_OPENMETRICS;
	return o->format == WF_OPENMETRICS_TEXT || strcmp(name, "openmetrics") == 0;
}

static int parse_options(int argc, char **argv, struct metrics_options *o)
{
	static const struct option options[] = {
		{ "every", required_argument, NULL, 'e' },
		{ "listen", required_argument, NULL, 'l' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	int c;

	optind = 0; /* main() has parsed options of its own */
	opterr = 0;
	while ((c = getopt_long(argc, argv, ":o:f:", options, NULL)) != -1) {
		switch (c) {
		case 'o':
			o->file = optarg;
			break;
		case 'l':
			o->place = optarg;
			break;
		case 'f':
			if (take_format(o, optarg))
				break;
			wf_cmd_error("metrics: -f takes openmetrics or text, not '%s'", optarg);
			return WF_EXIT_REFUSED;
		case 'e':
			if (wf_numbers_parse(optarg, 1, DAY_S, &o->every_s))
				break;
			wf_cmd_error("metrics: --every takes seconds from 1 to %d, not '%s'", DAY_S,
				     optarg);
			return WF_EXIT_REFUSED;
		case 'h':
			o->is_help = true;
			return 0;
		default:
			return wf_cmd_bad_option(&wf_metrics_cmd, c, argv);
		}
	}
	return 0;
}

static int parse_target(int argc, char **argv, struct metrics_options *o)
{
	char error[512];

	if (o->every_s && !o->file) {
		wf_cmd_error("metrics: --every goes with -o FILE");
		return WF_EXIT_REFUSED;
	}
	if (o->file && o->place) {
		wf_cmd_error("metrics: either -o or --listen");
		return WF_EXIT_REFUSED;
	}
	if (o->has_format && o->place) {
		wf_cmd_error(
			"metrics: -f goes without --listen, where the client says what it takes");
		return WF_EXIT_REFUSED;
	}
	if (!o->has_format && o->file)
		o->format = WF_OPENMETRICS_TEXT;
	if (argc - optind != 1) {
		wf_cmd_error("metrics: %s; see 'weft help metrics'",
			     optind == argc ? "which process?" : "one process at a time");
		return WF_EXIT_REFUSED;
	}
	o->pid = wf_find_pid(argv[optind], error, sizeof(error));
	if (!o->pid)
		wf_cmd_error("metrics: %s", error);
	return o->pid ? 0 : WF_EXIT_REFUSED;
}

struct source {
	struct wf_look look;
	struct wf_shares shares;
};

static int fail_ended(const struct wf_look *l)
{
	wf_cmd_error("metrics: %s", l->target.error);
	return EXIT_ENDED;
}

static int fail_file(const char *file, const char *temporary)
{
	wf_cmd_error("metrics: cannot write %s: %s", file, strerror(errno));
	if (temporary)
		(void)unlink(temporary);
	return WF_EXIT_REFUSED;
}

/* The reader of the folder takes files that end as FILE does: the temporary name ends otherwise. */
static int write_file(struct source *s, const char *file, enum wf_openmetrics_format format)
{
	char temporary[PATH_MAX];
	FILE *out;
	int fd, ret;

	if (snprintf(temporary, sizeof(temporary), "%s.%d.tmp", file, getpid()) >=
	    (int)sizeof(temporary)) {
		errno = ENAMETOOLONG;
		return fail_file(file, NULL);
	}
	fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	out = fd < 0 ? NULL : fdopen(fd, "w");
	if (!out)
		return fail_file(file, fd < 0 ? NULL : temporary);
	if (!wf_openmetrics_write(&s->look, &s->shares, out, format)) {
		fclose(out);
		(void)unlink(temporary);
		return fail_ended(&s->look);
	}
	ret = ferror(out);
	ret |= fclose(out);
	return ret || rename(temporary, file) < 0 ? fail_file(file, temporary) : 0;
}

static int write_files(struct source *s, const struct metrics_options *o)
{
	struct timespec next;
	int ret;

	clock_gettime(CLOCK_MONOTONIC, &next);
	while ((ret = write_file(s, o->file, o->format)) == 0 && o->every_s) {
		next.tv_sec += o->every_s;
		while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL) == EINTR)
			;
	}
	/* Figures of a process that is gone would be taken for those of one that does nothing. */
	if (ret == EXIT_ENDED && o->every_s)
		(void)unlink(o->file);
	return ret;
}

static char *make_page(void *arg, bool is_openmetrics, size_t *out_bytes)
{
	struct source *s = arg;
	char *text = NULL;
	FILE *out = open_memstream(&text, out_bytes);
	bool is_ok = out &&
		     wf_openmetrics_write(&s->look, &s->shares, out,
					  is_openmetrics ? WF_OPENMETRICS : WF_OPENMETRICS_TEXT);

	if (out && fclose(out) == 0 && is_ok)
		return text;
	free(text);
	return NULL;
}

static int serve(struct source *s, const char *place)
{
	struct wf_look *l = &s->look;
	char error[512], name[128];
	int fd = wf_serve_listen(place, error, sizeof(error));

	if (fd < 0) {
		wf_cmd_error("metrics: %s", error);
		return WF_EXIT_REFUSED;
	}
	wf_serve_name(fd, name, sizeof(name));
	wf_cmd_error("metrics: the figures of process %d are at %s", l->target.pid, name);
	(void)wf_target_fail(&l->target, "process %d has ended", l->target.pid);
	wf_serve_run(fd, l->target.pid, make_page, s);
	close(fd);
	return fail_ended(l);
}

static int metrics_main(int argc, char **argv)
{
	struct metrics_options o = { 0 };
	struct source s = { 0 };
	int ret = parse_options(argc, argv, &o);

	if (!ret && o.is_help) {
		fputs(metrics_help, stdout);
		return 0;
	}
	if (!ret)
		ret = parse_target(argc, argv, &o);
	if (ret)
		return ret;
	if (!wf_look_open(&s.look, o.pid)) {
		wf_cmd_error("metrics: %s", s.look.target.error);
		ret = WF_EXIT_REFUSED;
	} else if (o.place) {
		ret = serve(&s, o.place);
	} else if (o.file) {
		ret = write_files(&s, &o);
	} else {
		ret = wf_openmetrics_write(&s.look, &s.shares, stdout, o.format)
			      ? 0
			      : fail_ended(&s.look);
	}
	wf_shares_done(&s.shares);
	wf_look_done(&s.look);
	return ret;
}

const struct wf_cmd wf_metrics_cmd = {
	.name = "metrics",
	.summary = "the figures of a process, for Prometheus and its like",
	.help = metrics_help,
	.main = metrics_main,
};
