// SPDX-License-Identifier: Apache-2.0
/* The options of `weft run`. Used by: run.c, run_options.c. */
#ifndef WF_CMD_RUN_H
#define WF_CMD_RUN_H

#include <stdbool.h>

struct wf_run_options {
	unsigned long workers, slice_us; /* 0: not given */
	bool has_stats, has_seed, is_strict;
	const char *trace, *record, *children, *io_uring, *model, *watchdog;
	unsigned long long seed;
	unsigned long long stack_bytes; /* 0: not given */
};

extern const char wf_run_help[];

/* All three return 0, or the exit code after an error has been told. */

/* The command line. *out_done: there was nothing to do but to show a text. optind is the program's index afterwards. */
int wf_run_parse_options(int argc, char **argv, struct wf_run_options *out, bool *out_done);
/* A setting that no option gives may stand in the environment. */
int wf_run_parse_environment(struct wf_run_options *out);
/* text: yes or no in one of its ways. name: whose it is. */
int wf_run_take_answer(bool *out, const char *name, const char *text);

#endif
