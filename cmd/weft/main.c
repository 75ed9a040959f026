// SPDX-License-Identifier: Apache-2.0
/*
 * The `weft` command: finds the sub-command and runs it.
 *
 * Invariant: a sub-command is one row of the table below; help, summary and dispatch all come from it.
 */
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cmd.h"
#include "text.h"

static const struct wf_cmd *const commands[] = {
	&wf_run_cmd,   &wf_ps_cmd,     &wf_top_cmd,   &wf_metrics_cmd, &wf_dump_cmd,
	&wf_trace_cmd, &wf_doctor_cmd, &wf_bench_cmd, &wf_compare_cmd, &wf_watch_cmd,
};

#define NR_COMMANDS (sizeof(commands) / sizeof(commands[0]))

void wf_cmd_error(const char *format, ...)
{
	char text[8192], line[8192];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	wf_text_clean(line, sizeof(line), text);
	dprintf(STDERR_FILENO, "weft: %s\n", line);
}

int wf_cmd_bad_option(const struct wf_cmd *cmd, int result, char **argv)
{
	if (result == ':')
		wf_cmd_error("%s: option '%s' needs a value; see 'weft help %s'", cmd->name,
			     argv[optind - 1], cmd->name);
	else if (strncmp(argv[optind - 1], "--", 2) == 0 && optopt)
		wf_cmd_error("%s: option '%.*s' takes no value; see 'weft help %s'", cmd->name,
			     (int)strcspn(argv[optind - 1], "="), argv[optind - 1], cmd->name);
	else if (strncmp(argv[optind - 1], "--", 2) == 0)
		wf_cmd_error("%s: no option '%s'; see 'weft help %s'", cmd->name, argv[optind - 1],
			     cmd->name);
	else
		wf_cmd_error("%s: no option '-%c'; see 'weft help %s'", cmd->name, optopt,
			     cmd->name);
	return WF_EXIT_REFUSED;
}

void wf_cmd_version(void)
{
	puts("weft " WEFT_VERSION);
}

static const struct wf_cmd *find_command(const char *name)
{
	for (size_t i = 0; i < NR_COMMANDS; i++) {
		if (strcmp(commands[i]->name, name) == 0)
			return commands[i];
	}
	return NULL;
}

static void print_help(FILE *out)
{
	fputs("Usage: weft COMMAND [OPTION]...\n"
	      "\n"
	      "weft runs unmodified programs with user-level threads.\n"
	      "\n",
	      out);
	for (size_t i = 0; i < NR_COMMANDS; i++)
		fprintf(out, "  %-10s %s\n", commands[i]->name, commands[i]->summary);
	fputs("  help       show this text, or that of a command\n"
	      "  version    show the version\n"
	      "\n"
	      "  --help, -h; --version, -V: the same\n",
	      out);
}

static int unknown_command(const char *name)
{
	wf_cmd_error("no command '%s'; see 'weft --help'", name);
	return WF_EXIT_REFUSED;
}

static int help_main(int argc, char **argv)
{
	const struct wf_cmd *cmd;

	if (argc < 2 || strcmp(argv[1], "help") == 0) {
		print_help(stdout);
		return 0;
	}
	cmd = find_command(argv[1]);
	if (!cmd)
		return unknown_command(argv[1]);
	fputs(cmd->help, stdout);
	return 0;
}

/* Output that did not arrive is an error, not a success (full disk, closed pipe). */
static int flushed(int exit_code)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return exit_code;
	wf_cmd_error("cannot write to standard output");
	return WF_EXIT_REFUSED;
}

int main(int argc, char **argv)
{
	const struct wf_cmd *cmd;

	if (argc < 2) {
		print_help(stderr);
		return WF_EXIT_REFUSED;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
		return flushed(help_main(1, argv));
	if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0 ||
	    strcmp(argv[1], "version") == 0) {
		wf_cmd_version();
		return flushed(0);
	}
	if (strcmp(argv[1], "help") == 0)
		return flushed(help_main(argc - 1, argv + 1));
	cmd = find_command(argv[1]);
	if (!cmd)
		return unknown_command(argv[1]);
	return flushed(cmd->main(argc - 1, argv + 1));
}
