// SPDX-License-Identifier: Apache-2.0
/*
 * The WEFT_* variables. Called by: attach.c, before libc knows its environment.
 *
 * Invariant: a value that is not understood changes nothing, and costs one line at the first thread: a program that makes
 * none never hears of it.
 */
#ifndef WF_GATE_SETTINGS_H
#define WF_GATE_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

struct wf_settings {
	bool is_off;         /* WEFT */
	bool is_on;          /* WEFT, too: where it is a question */
	bool is_strict;      /* WEFT_STRICT: end instead of falling back to plain NPTL */
	bool is_first;       /* WEFT_PID: this process is what `weft run` became */
	bool wants_stats;    /* WEFT_STATS */
	bool wants_perf_map; /* WEFT_PERF_MAP */
	unsigned keeps;      /* WEFT_TRACE, WEFT_RECORD: events, WF_TRACE_* */
	uint64_t ring_bytes;
	bool leaves_children;   /* WEFT_CHILDREN */
	const char *trace_file; /* in the environment, or NULL */
	const char *watch;      /* WEFT_WATCH: where the page of weft watch is, or NULL */
};

/* env: NULL for a process in secure mode, which is asked nothing. Sets lx_config as well. */
void wf_settings_read(char **env, struct wf_settings *out);

/* Say which values were not understood, once. */
void wf_settings_complain(void);

#endif
