// SPDX-License-Identifier: Apache-2.0
/*
 * `weft trace`: its options, what it does with them, and its formats.
 *
 * Used by: all of this folder. Invariant: every name of the target's comes clean (take.c) into what is written.
 */
#ifndef WF_TRACE_COMMAND_H
#define WF_TRACE_COMMAND_H

#include <stdio.h>

#include "trace/take.h"

struct wf_trace_format {
	const char *name, *suffix;
	bool (*write)(FILE *out, const struct wf_take *k);
};

enum wf_trace_condition_kind {
	WF_TRACE_ON_CALL,
	WF_TRACE_ON_READY,
	WF_TRACE_ON_STALL,
	WF_TRACE_ON_DEADLOCK,
};

struct wf_trace_condition {
	enum wf_trace_condition_kind kind;
	int64_t ns;
	const char *text; /* its first word */
};

#define WF_TRACE_MAX_CONDITIONS 8u

struct wf_trace_options {
	int pid;
	const char *core, *exe, *file;        /* file NULL: by the process */
	int64_t last_ns, for_ns;              /* 0: not given */
	const struct wf_trace_format *format; /* NULL: the first */
	struct wf_trace_condition conditions[WF_TRACE_MAX_CONDITIONS];
	unsigned nr_conditions, keep;
	uint64_t ring_bytes; /* of --arm */
	bool is_arm, is_disarm, has_calls;
	bool is_help, is_quiet;
};

/* perfetto.c, json.c, text.c: false when memory runs out; what the stream says of errors is the caller's. */

/* For https://ui.perfetto.dev: workers as CPUs, waits and calls as slices of threads. */
bool wf_trace_perfetto(FILE *out, const struct wf_take *k);
/* For chrome://tracing and others: the same as events that begin and end. */
bool wf_trace_json(FILE *out, const struct wf_take *k);
/* A line for each event. */
bool wf_trace_text(FILE *out, const struct wf_take *k);

/* file.c */
bool wf_trace_find_format(const char *name, const struct wf_trace_format **out);
/* The file is written, or there is none and one line has said why. Nothing of it was there before. */
bool wf_trace_write_file(const char *file, const struct wf_trace_format *format,
			 const struct wf_take *k);
/* "wrote FILE: ..." */
void wf_trace_say_written(const char *file, const struct wf_trace_format *format,
			  const struct wf_take *k);
/* Of an options' file, or of its process. */
void wf_trace_name_file(const struct wf_trace_options *o, const struct wf_take *k, char *out,
			size_t bytes);

/* run.c */
int wf_trace_run(const struct wf_trace_options *o);

#endif
