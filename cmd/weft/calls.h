// SPDX-License-Identifier: Apache-2.0
/*
 * The table of calls: what becomes of each system call and function in a program under weft.
 *
 * The rows are made by tools/calls from docs/system-calls.tsv and docs/functions.tsv. Used by: uses.c,
 * report.c, target/wait.c.
 */
#ifndef WF_CALLS_H
#define WF_CALLS_H

#include <stddef.h>

enum wf_calls_fate {
	WF_CALLS_LIBC,     /* libc's own code */
	WF_CALLS_EMULATED, /* answered in user space */
	WF_CALLS_PASSED,   /* to the kernel, unchanged */
	WF_CALLS_HANDED,   /* to the kernel, and the worker to another kernel thread */
	WF_CALLS_BOUND,    /* the calling thread keeps a kernel thread of its own */
	WF_CALLS_REFUSED,
};

struct wf_calls_row {
	const char *name;
	enum wf_calls_fate fate;
	const char *test;
	const char *note; /* what differs, or "" */
	int nr;           /* of a system call, else -1 */
};

extern const char *const wf_calls_fate_names[];
extern const struct wf_calls_row wf_calls_functions[], wf_calls_system[];
extern const size_t wf_calls_nr_functions, wf_calls_nr_system;

#endif
