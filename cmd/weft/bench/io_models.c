// SPDX-License-Identifier: Apache-2.0
/* The options of `weft bench io-models`; see models.h. Called by: bench.c. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd.h"
#include "bench/bench.h"
#include "bench/models.h"
#include "numbers.h"
#include "svg.h"

#define CONNECTIONS_MAX 500000
#define SECONDS_MIN 0.05
#define SECONDS_MAX 60
#define SIZE_MAX_BYTES 4096 /* bench/echo */

static int refuse(const char *option, const char *wants, const char *got)
{
	wf_cmd_error("bench: %s takes %s, not '%s'", option, wants, got);
	return WF_EXIT_REFUSED;
}

static bool parse_seconds(const char *text, double *out)
{
	char *end;
	double value;

	if (*text < '0' || *text > '9')
		return false;
	value = strtod(text, &end);
	if (*end || !(value >= SECONDS_MIN && value <= SECONDS_MAX))
		return false;
	*out = value;
	return true;
}

static bool add_connections(struct wf_models *m, const char *item)
{
	return m->nr_connections < WF_MODELS_CONNECTIONS_MAX &&
	       wf_numbers_parse(item, 1, CONNECTIONS_MAX, &m->connections[m->nr_connections++]);
}

static bool add_model(struct wf_models *m, const char *item)
{
	const struct wf_model *model = wf_models_find(item);

	for (int i = 0; i < m->nr_models; i++) {
		if (m->models[i] == model)
			return false;
	}
	if (model)
		m->models[m->nr_models++] = model;
	return model != NULL;
}

/* Calls `add` for each item of a list with commas. */
static bool parse_list(struct wf_models *m, const char *list,
		       bool (*add)(struct wf_models *m, const char *item))
{
	for (;;) {
		size_t len = strcspn(list, ",");
		char item[32];

		if (len == 0 || len >= sizeof(item))
			return false;
		memcpy(item, list, len);
		item[len] = '\0';
		if (!add(m, item))
			return false;
		if (!list[len])
			return true;
		list += len + 1;
	}
}

struct models_options {
	struct wf_models m;
	const char *svg;
	bool is_json, is_help;
};

static int take_option(struct models_options *o, int c)
{
	switch (c) {
	case 'c':
		o->m.nr_connections = 0;
		if (!parse_list(&o->m, optarg, add_connections))
			return refuse("--connections", "up to 8 numbers from 1 to 500000", optarg);
		return 0;
	case 's':
		if (!parse_seconds(optarg, &o->m.seconds))
			return refuse("--seconds", "a number from 0.05 to 60", optarg);
		return 0;
	case 'r':
		if (!wf_numbers_parse(optarg, 1, WF_MODELS_ROUNDS_MAX, &o->m.nr_rounds))
			return refuse("--rounds", "a number from 1 to 100", optarg);
		return 0;
	case 'b':
		if (!wf_numbers_parse(optarg, 1, SIZE_MAX_BYTES, &o->m.size_bytes))
			return refuse("--size", "a number from 1 to 4096", optarg);
		return 0;
	case 'm':
		o->m.nr_models = 0;
		if (!parse_list(&o->m, optarg, add_model))
			return refuse("--models",
				      "threads, spin, poll, epoll, io_uring and weft, each once",
				      optarg);
		return 0;
	case 'v':
		o->svg = optarg;
		return *optarg ? 0 : refuse("--svg", "the name of a file", optarg);
	case 'j':
		o->is_json = true;
		return 0;
	default:
		o->is_help = true;
		return 0;
	}
}

/* Returns 0, or the exit code. */
static int parse_options(int argc, char **argv, struct models_options *out)
{
	static const struct option options[] = {
		{ "connections", required_argument, NULL, 'c' },
		{ "seconds", required_argument, NULL, 's' },
		{ "rounds", required_argument, NULL, 'r' },
		{ "size", required_argument, NULL, 'b' },
		{ "models", required_argument, NULL, 'm' },
		{ "svg", required_argument, NULL, 'v' },
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	int c, ret;

	optind = 0;
	opterr = 0;
	while ((c = getopt_long(argc, argv, "+:", options, NULL)) != -1) {
		if (c == '?' || c == ':')
			return wf_cmd_bad_option(&wf_bench_cmd, c, argv);
		ret = take_option(out, c);
		if (ret)
			return ret;
	}
	if (optind < argc) {
		wf_cmd_error("bench: what is '%s'? see 'weft help bench'", argv[optind]);
		return WF_EXIT_REFUSED;
	}
	return 0;
}

/* Opened before an hour of measuring, written after it. */
static int open_picture(const char *name)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);

	if (fd < 0)
		wf_cmd_error("bench: cannot write %s: %s", name, strerror(errno));
	return fd;
}

static bool write_picture(const struct wf_models *m, int fd, const char *name)
{
	FILE *out = ftruncate(fd, 0) == 0 || errno == EINVAL ? fdopen(fd, "w") : NULL;
	bool is_good = out != NULL;

	if (out) {
		wf_svg_prolog(out);
		wf_models_svg_write(m, out);
		is_good = !ferror(out);
		is_good = fclose(out) == 0 && is_good;
	}
	if (!is_good)
		wf_cmd_error("bench: cannot write %s: %s", name, strerror(errno));
	return is_good;
}

static int run_models(struct models_options *o)
{
	int picture = o->svg ? open_picture(o->svg) : -1;
	int ret = 0;

	if (o->svg && picture < 0)
		return WF_EXIT_REFUSED;
	wf_bench_prepare();
	if (!wf_models_measure(&o->m)) {
		wf_models_done(&o->m);
		return WF_EXIT_REFUSED;
	}
	if (o->is_json)
		wf_models_show_json(&o->m);
	else
		wf_models_show_table(&o->m);
	for (int i = 0; i < o->m.nr_rows; i++) {
		if (o->m.rows[i].is_failure)
			ret = 1;
	}
	if (o->svg && !write_picture(&o->m, picture, o->svg))
		ret = WF_EXIT_REFUSED;
	wf_models_done(&o->m);
	return ret;
}

int wf_bench_io_models_main(int argc, char **argv)
{
	struct models_options o = { 0 };
	int ret;

	wf_models_init(&o.m);
	ret = parse_options(argc, argv, &o);
	if (ret)
		return ret;
	if (o.is_help) {
		wf_bench_help();
		return 0;
	}
	return run_models(&o);
}
