// SPDX-License-Identifier: Apache-2.0
/*
 * Shared by the sub-commands of `weft`: the table row, the exit codes and the one-line error.
 *
 * Used by: every file of this folder. Invariant: whatever goes wrong in the command itself ends in
 * one line on stderr that starts with "weft: ", and in one of the codes below.
 */
#ifndef WF_CMD_H
#define WF_CMD_H

/* As env(1), nohup(1) and timeout(1) do it: a wrapper's own troubles look like no program's. */
#define WF_EXIT_REFUSED 125
#define WF_EXIT_NOT_EXECUTABLE 126
#define WF_EXIT_NOT_FOUND 127

struct wf_cmd {
	const char *name;
	const char *summary; /* one line of `weft --help` */
	const char *help;    /* all of `weft help NAME` */
	/* argv[0] is the command's name; returns the exit code. */
	int (*main)(int argc, char **argv);
};

extern const struct wf_cmd wf_run_cmd;     /* run.c */
extern const struct wf_cmd wf_ps_cmd;      /* look/ps.c */
extern const struct wf_cmd wf_top_cmd;     /* look/top.c */
extern const struct wf_cmd wf_metrics_cmd; /* look/metrics.c */
extern const struct wf_cmd wf_dump_cmd;    /* dump.c */
extern const struct wf_cmd wf_trace_cmd;   /* trace/trace.c */
extern const struct wf_cmd wf_doctor_cmd;  /* doctor.c */
extern const struct wf_cmd wf_bench_cmd;   /* bench.c */
extern const struct wf_cmd wf_compare_cmd; /* compare/compare.c */
extern const struct wf_cmd wf_watch_cmd;   /* watch/watch.c */

/* Prints "weft: MESSAGE" as one line; control characters of hostile names do not reach it. */
__attribute__((format(printf, 1, 2))) void wf_cmd_error(const char *format, ...);

void wf_cmd_version(void);

/* The error after getopt_long() returned '?' or ':' for argv; returns WF_EXIT_REFUSED. */
int wf_cmd_bad_option(const struct wf_cmd *cmd, int result, char **argv);

#endif
